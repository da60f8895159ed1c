"""key_of: one digest in Python and in SQL, for whatever jsonb can hold."""

from __future__ import annotations

import json
import random
from typing import Any

import asyncpg
import pytest

from hybrid_runner import ConfigurationError, key_of
from hybrid_runner.handlers.argument_keys import key_of_text
from hybrid_runner.storage.connections.connection import Connection

KEY_OF = "SELECT hybrid_runner.key_of($1, $2::text::jsonb, VARIADIC $3::text[])"
SIGNS = [*'ab"\\/ {}[]:,.0', "\b", "\f", "\n", "\r", "\t", "\x01", "\x1f", "\x7f"]
SIGNS += ["é", "ß", "€", "😀", "\u2028", "\u00a0", "\ufeff", "\uffff", ".0", "1.50", "zzzzz"]
NUMBERS = [
    *("0", "-0", "-0.0", "0.0", "1", "1.0", "1e0", "1E0", "100", "1e2", "1.50", "1.500e1"),
    *("0e5", "0e-5", "1e-5", "1.0e-5", "123e-2", "10e-1", "1e+3", "-1.10", "0.0001000", "10.0100"),
]
EDGES = [
    *("1e131071", "1e131072", "-9.99e131071", "1e-16383", "1e-16384", "10e-16384", "1.0e-16383"),
    *("0e131072", "0e999999", "0e-16384", "0.0e-16382", "1e1000000", "0e1073741824"),
    *("1e99999999999", "0e-99999999", "1e99999999999999999999999999"),
    *("0." + "1" * 16383, "0." + "1" * 16384, "1" * 131072, "1" * 131073, "1" * 5000),
    *(r'"\u0000"', r'"\\u0000"', r'"\ud800"', r'"\udc00"', r'"\ud83d\ude00"', r'"\ud83dx"'),
    *("NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "-", '"\t"', "", "[1,]", " 1 "),
    *('{"a": 1, "a": 2.0}', '{"aa": 1, "b": 2, "é": 3, "z": 4, "": 5}', r'"\/\u000a\u007f"'),
    "[" * 200 + "]" * 200,
]


def number(chance: random.Random) -> str:
    match chance.randrange(4):
        case 0:
            return str(chance.randint(-(10 ** chance.randint(1, 30)), 10 ** chance.randint(1, 30)))
        case 1:
            return repr(chance.uniform(-1, 1) * 10 ** chance.randint(-300, 300))
        case 2:
            return f"{chance.randint(0, 99)}.{chance.randint(0, 99999)}e{chance.randint(-40, 40)}"
        case _:
            return chance.choice(NUMBERS)


def text(chance: random.Random) -> str:
    signs = "".join(chance.choice(SIGNS) for _ in range(chance.randint(0, 6)))
    return json.dumps(signs, ensure_ascii=chance.random() < 0.5)


def document(chance: random.Random, depth: int = 0) -> str:
    """JSON of any kind, written in any way."""
    if depth > 4 or chance.random() < 0.5:
        return chance.choice([number(chance), text(chance), "null", "true", "false"])
    space = chance.choice(["", " ", "\n"])
    parts = [document(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    if chance.random() < 0.5:
        return f"[{f',{space}'.join(parts)}]"
    return "{" + f",{space}".join(f"{text(chance)}{space}:{part}" for part in parts) + "}"


async def in_sql(on: Connection, payload: str, names: list[str]) -> str:
    """The key, or what was said."""
    try:
        key: str = await on.fetchval(KEY_OF, "work", payload, names)
    except asyncpg.PostgresError:
        return "refused"
    return key


def in_python(payload: str, names: list[str]) -> str:
    try:
        return key_of_text("work", payload, names)
    except ConfigurationError:
        return "refused"


async def test_python_and_sql_make_the_same_key_of_any_json(unchanged: Connection) -> None:
    chance = random.Random(16)
    documents = [document(chance) for _ in range(5000)]
    keys = await unchanged.fetch(
        "SELECT hybrid_runner.key_of('work', d::jsonb) FROM unnest($1::text[]) AS d", documents
    )
    for written, row in zip(documents, keys, strict=True):
        assert key_of_text("work", written, ()) == row[0], written


async def test_python_and_sql_make_the_same_key_of_chosen_members(unchanged: Connection) -> None:
    chance = random.Random(17)
    for _ in range(500):
        members = {name: document(chance) for name in chance.sample("abcdé", chance.randint(0, 5))}
        written = "{" + ", ".join(f'"{name}": {part}' for name, part in members.items()) + "}"
        names = chance.choices("abcdéx", k=chance.randint(1, 3))
        made = in_python(written, names)
        assert made == await in_sql(unchanged, written, names), (written, names)
        assert (made == "refused") == (not set(names) & members.keys())


@pytest.mark.parametrize("written", EDGES, ids=lambda written: repr(written[:30]))
async def test_what_jsonb_cannot_hold_is_refused_in_both(
    unchanged: Connection, written: str
) -> None:
    assert in_python(written, []) == await in_sql(unchanged, written, [])


@pytest.mark.parametrize("payload", ["{}", "[]", "1", "null", '"a"', "true", '{"a": 1}'])
async def test_python_and_sql_refuse_members_in_the_same_words(
    unchanged: Connection, payload: str
) -> None:
    with pytest.raises(ConfigurationError) as here:
        key_of_text("work", payload, ["c", "b"])
    with pytest.raises(asyncpg.InvalidParameterValueError) as there:
        await unchanged.fetchval(KEY_OF, "work", payload, ["c", "b"])
    assert str(here.value).removeprefix("work: ") == str(there.value)


@pytest.mark.parametrize("names", [[""], ["a", None], ["a", ""]])
async def test_a_member_without_a_name_is_refused_in_both(
    unchanged: Connection, names: list[Any]
) -> None:
    with pytest.raises(ConfigurationError):
        key_of_text("work", '{"a": 1}', names)
    with pytest.raises(asyncpg.InvalidParameterValueError):
        await unchanged.fetchval(KEY_OF, "work", '{"a": 1}', names)


@pytest.mark.parametrize(
    ("kind", "payload"), [("NULL", "'{}'"), ("'work'", "NULL"), ("NULL", "NULL")]
)
async def test_nothing_has_no_key_in_sql(unchanged: Connection, kind: str, payload: str) -> None:
    """It would be no key, and every job would be stored."""
    with pytest.raises(asyncpg.InvalidParameterValueError):
        await unchanged.fetchval(f"SELECT hybrid_runner.key_of({kind}, {payload}::jsonb)")


async def test_a_payload_of_python_has_the_key_of_what_is_stored(unchanged: Connection) -> None:
    payload = {"url": "https://example.com/é", "sizes": [1.0, 2, 10**30], "at": None}
    assert key_of("work", payload) == await in_sql(unchanged, json.dumps(payload), [])
    assert key_of("work", payload, "url", "at") == await in_sql(
        unchanged, json.dumps(payload), ["at", "url"]
    )
