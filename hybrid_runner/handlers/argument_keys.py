"""Keys that are made of what a job is asked to do; sql/functions/key_of.sql makes the same."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.canonical_json import canonical, read_exactly
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.new_job_checks import check_kind
from hybrid_runner.jsontext import NotStorable, encode

_JSON_NAMES = {dict: "object", list: "array", bool: "boolean", type(None): "null"}


def key_of(kind: JobKind[Any, Any] | str, payload: Any, *names: str) -> str:
    """The key of a job of this kind: equal where these members of the payload are, or without names
    the whole of it. A member that is missing counts as null.

    The same text as `hybrid_runner.key_of(kind, payload, VARIADIC names)` gives in SQL.
    """
    if isinstance(kind, JobKind):
        return key_of_text(kind.name, kind.encode(payload), names)
    check_kind(kind)
    try:
        return key_of_text(kind, encode(payload, "the payload"), names)
    except NotStorable as error:
        raise ConfigurationError(f"{kind}: {error}") from None


def key_of_text(kind: str, text: str, names: Collection[str]) -> str:
    """`key_of` of a payload that is JSON text already."""
    try:
        value = read_exactly(text, "the payload")
        chosen = _chosen(kind, value, names) if names else value
        digest = sha256(canonical(chosen, "the payload").encode())
    except NotStorable as error:
        raise ConfigurationError(f"{kind}: {error}") from None
    return f"{kind}:{digest.hexdigest()}"


def _chosen(kind: str, value: Any, names: Collection[str]) -> dict[str, Any]:
    if not all(map(_is_name, names)):
        raise ConfigurationError(f"{kind}: a name of a member must not be empty")
    if not isinstance(value, dict):
        what = _JSON_NAMES.get(type(value)) or ("string" if type(value) is str else "number")
        raise ConfigurationError(
            f"{kind}: payload must be an object to take a key of its members, not {what}"
        )
    if not value.keys() & set(names):
        raise ConfigurationError(
            f"{kind}: payload has none of these members: {', '.join(names)[:200]}"
        )
    return {name: value.get(name) for name in names}


def key_of_job(kind: JobKind[Any, Any], text: str, *, collects: bool = False) -> str | None:
    """The key that the kind's `unique` gives a job with this payload; of a list of items that are
    collected, the one that they all have.
    """
    if kind.unique is None:
        return None
    if not collects:
        return key_of_text(kind.name, text, kind.unique)
    value = read_exactly(text, "the payload")
    items = value if isinstance(value, list) else [value]
    keys = {_key_of_value(kind, item) for item in items}
    if len(keys) != 1:
        raise ConfigurationError(
            f"{kind.name}: these {len(items):,} items have {len(keys):,} keys: enqueue those of"
            " each key by themselves"
        )
    return keys.pop()


def _key_of_value(kind: JobKind[Any, Any], item: Any) -> str:
    names = kind.unique or ()
    chosen = _chosen(kind.name, item, names) if names else item
    return f"{kind.name}:{sha256(canonical(chosen, 'the payload').encode()).hexdigest()}"


def check_unique(
    kind: str, unique: object, members: Sequence[str] | None
) -> tuple[str, ...] | None:
    """What `@app.job(…, unique=…)` says, as names; `members` are those of the payload, where its
    type has a fixed set of them.
    """
    if unique is None or unique is False:
        return None
    if unique is True:
        return ()
    if not isinstance(unique, tuple | list) or not unique or not all(map(_is_name, unique)):
        raise ConfigurationError(
            f"kind {kind!r}: unique must be names of the payload's members, such as"
            f' unique=("url",), or True for all of it, not {str(unique)[:60]!r}'
        )
    for name in unique:
        if members is not None and name not in members:
            near = difflib.get_close_matches(name, members, n=1)
            guess = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(members)[:200]}"
            raise ConfigurationError(
                f"kind {kind!r}: its payload has no member {name!r} to be unique by: {guess}"
            )
    return tuple(sorted(set(unique)))


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)
