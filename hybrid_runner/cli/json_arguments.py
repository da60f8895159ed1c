"""Arguments that are JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, NoReturn


def payload_of(arguments: argparse.Namespace) -> Any:
    """The argument `payload`, from stdin if it is `-`; a usage error if it is no JSON."""
    try:
        text = sys.stdin.read() if arguments.payload == "-" else arguments.payload
        return read_json(text, "the payload")
    except (ValueError, RecursionError) as error:
        arguments.parser.error(str(error))


def read_json(text: str, what: str) -> Any:
    """The value of a JSON text; ValueError says what is wrong with it."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except _Constant as error:
        raise ValueError(f"{what} is not JSON: JSON has no {error}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"{what} is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply") from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise ValueError(f"{what} has a number with too many digits: write it as a text") from None


class _Constant(Exception):
    """NaN or Infinity."""


def _no_constant(name: str) -> NoReturn:
    raise _Constant(name)
