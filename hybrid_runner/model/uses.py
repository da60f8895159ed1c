"""What values in a job's memory did at one look, for metrics."""

from __future__ import annotations

from typing import Literal, get_args

Use = Literal["opened", "seen", "confirmed", "again", "used_up"]
"""A `Gate` opened; `Confirmations` took one more, or had enough; `Tries` tried again, or had none
left.
"""
USES: frozenset[str] = frozenset(get_args(Use))
Uses = dict[tuple[Use, str], int]
"""How often, by the name of the field."""
