"""What counts as a number in an argument: True and False do not."""

from __future__ import annotations


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_count(value: object, least: int) -> bool:
    """Whether it is a whole number, `least` or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
