"""Names of tables as people write them, and names as people read them."""

from __future__ import annotations

import re

from hybrid_runner.errors import ConfigurationError

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*(\.|$)')
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def read_name(text: str) -> tuple[str | None, str]:
    """(schema, name) of a table as SQL writes it; the schema is None where it is left out."""
    parts: list[str] = []
    place = 0
    while place < len(text) or not parts:
        found = _PART.match(text, place)
        if found is None:
            break
        parts.append(found[1].replace('""', '"') if found[1] else found[2].lower())
        place = found.end()
        if not found[3]:
            break
    if not parts or place < len(text) or text.rstrip().endswith(".") or len(parts) > 2:
        raise ConfigurationError(
            f"{text[:100]!r} is not the name of a table: write it as in SQL, like audits,"
            ' app.audits or app."Audits"'
        )
    return (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def readable(name: str) -> str:
    """The name, quoted where it has to be."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
