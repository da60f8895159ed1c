"""Names and values as SQL has them, whatever they contain."""

from __future__ import annotations


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string that means the same with standard_conforming_strings on or off."""
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def dollar_quote(*bodies: str) -> str:
    """A quote that stands in none of these."""
    number = 0
    while (quote := f"$source_{number}$") in "".join(bodies):
        number += 1
    return quote
