"""Checks every SQL file by the rules below: `python -m tools.sql_lint`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SQL = ROOT / "sql"
STORAGE = ROOT / "hybrid_runner" / "storage"
DUMP = "schema.sql"
SCHEMAS = {"": "hybrid_runner", "monitors": "hybrid_monitors"}
"""The schema of each part of sql/."""

_KEYWORDS = """
    add after all alter always and any as asc before begin between by cascade case check commit
    conflict constraint continue create cross declare default definer delete desc distinct do
    drop each else elsif end enum exception execute exists exit for foreach from function
    generated grant group having identity if in index inner insert into is join language
    lateral like limit lock locked loop materialized not notice nothing null offset on or order
    outer perform primary raise references referencing returning returns revoke rollback schema
    security select sequence set skip slice statement stored strict table then to union unique
    update using values view when where with
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Words that are never names in our SQL, so they are written in upper case."""

_NOT_CODE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"", re.DOTALL)
_WORD = re.compile(r"(?<![\w.$])[A-Za-z_]+(?!\w)(?!\s*\.)")
_HEADER_PARAMETER = re.compile(r"\$(\d+) ([a-z0-9]+(?:\[\])?) ([a-z_]+)")
_WIDEST_COMMENT = 100
ON_CALLERS_CONNECTIONS = frozenset(
    {
        "enqueue_alike",
        "enqueue_job",
        "enqueue_many",
        "enqueue_many_keyed",
        "look_up_kinds",
        "finish_followed_jobs",
        "finish_jobs",
        "send_signal",
    }
)
"""Queries that run on connections of callers, whose search path may find a stranger's function
first.
"""
_NO_SCHEMA_NEEDED = {"coalesce", "nullif", "greatest", "least", "extract"}
"""Looks like a function and is grammar."""
_CALL = re.compile(r"(?<![\w.])([a-z_]\w*)\(")
_FIXED_PATH = "SET search_path = pg_catalog, pg_temp"
_LOCK_OF_ANYBODY = re.compile(r"\bpg_(?:try_)?advisory_\w+|\bhashtext(?:extended)?\b")
_CALLERS = {"fetch": 1, "fetch_value": 1, "query": 0}
"""Functions in storage/ that take a query's name, and the place of that argument."""


class Complaint(NamedTuple):
    """What is wrong, and where."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.what}"


class Header(NamedTuple):
    """The first lines of a query file: `-- name: what`, `-- $1 type name, …`, `-- odd: …`.

    A line that is indented by two more spaces continues the one before.
    """

    name: str
    what: str
    parameters: list[tuple[str, str]]
    """(type, name) of $1, $2 …"""


def read_header(path: Path) -> Header:
    """The header of a query file; ValueError says what is wrong with it."""
    comments = _leading_comments(path.read_text(encoding="utf-8"))
    first = re.fullmatch(r"([a-z_]+): (\S.*)", comments[0]) if comments else None
    if first is None:
        raise ValueError(f'the first line is "-- {path.stem}: what it does"')
    parameters: list[tuple[str, str]] = []
    for line in (line for line in comments[1:] if line.startswith("$")):
        for part in line.rstrip(",").split(", "):
            found = _HEADER_PARAMETER.fullmatch(part)
            if found is None or int(found[1]) != len(parameters) + 1:
                raise ValueError(
                    f'parameter {len(parameters) + 1} is written "${len(parameters) + 1} type'
                    f' name", not "{part}"'
                )
            parameters.append((found[2], found[3]))
    return Header(first[1], first[2], parameters)


def check_everything() -> list[Complaint]:
    """All complaints about all files, in order."""
    files = sorted(path for path in SQL.rglob("*.sql") if path.name != DUMP)
    return [complaint for path in files for complaint in check_file(path)] + list(
        _unused_and_missing()
    )


def check_file(path: Path) -> Iterator[Complaint]:
    """Complaints about one file."""
    text = path.read_text(encoding="utf-8")
    yield from _text_rules(path, text)
    yield from _lock_rules(path, text)
    match path.parent.name:
        case "queries":
            yield from _query_rules(path, text)
        case "migrations":
            yield from _migration_rules(path, text)
        case "functions":
            yield from _head_rule(path, text)
            yield from _function_rules(path, text)
        case _:
            yield from _head_rule(path, text)


def _text_rules(path: Path, text: str) -> Iterator[Complaint]:
    code = _without_comments_and_literals(text)
    for line, words in enumerate(code.split("\n"), start=1):
        for word in _WORD.findall(words):
            if word.lower() in KEYWORDS and not word.isupper():
                yield Complaint(path, line, f"keyword {word} is written {word.upper()}")
            if word.lower() in {"timestamp", "time"}:
                yield Complaint(path, line, "times are timestamptz, always")
        if re.search(r"\bSELECT\s+\*", words):
            yield Complaint(path, line, "SELECT names its columns, never *")
        if "\t" in words or words != words.rstrip():
            yield Complaint(path, line, "no tabs, no spaces at the end")
    for line, words in enumerate(text.split("\n"), start=1):
        if words.lstrip().startswith("--") and len(words) > _WIDEST_COMMENT:
            yield Complaint(path, line, f"a comment has at most {_WIDEST_COMMENT} columns")
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield Complaint(path, text.count("\n"), "a file ends with one line break")


def _lock_rules(path: Path, text: str) -> Iterator[Complaint]:
    code = _without_comments_and_literals(text)
    for line, words in enumerate(code.split("\n"), start=1):
        if _LOCK_OF_ANYBODY.search(words):
            yield Complaint(
                path, line, "any login can take an advisory lock: lock a row of hybrid_runner.locks"
            )


def _schema_rules(path: Path, code: str) -> Iterator[Complaint]:
    if path.stem not in ON_CALLERS_CONNECTIONS:
        return
    for line, words in enumerate(code.split("\n"), start=1):
        for name in _unqualified(words):
            yield Complaint(path, line, f"it runs on callers' connections: pg_catalog.{name}")


def _unqualified(code: str) -> list[str]:
    """The functions that are called without a schema."""
    return [name for name in _CALL.findall(code) if name not in _NO_SCHEMA_NEEDED]


def _query_rules(path: Path, text: str) -> Iterator[Complaint]:
    try:
        header = read_header(path)
    except ValueError as error:
        yield Complaint(path, 1, str(error))
        return
    if header.name != path.stem:
        yield Complaint(path, 1, f"the header names {header.name}, the file {path.stem}")
    for line, comment in enumerate(_leading_comments(text)[1:], start=2):
        if not comment.startswith(("$", "odd: ")):
            yield Complaint(
                path, line, 'after the first line come "-- $1 type name, …" and "-- odd: …" only'
            )
    code = _without_comments_and_literals(text)
    used = {int(number) for number in re.findall(r"\$(\d+)", code)}
    declared = set(range(1, len(header.parameters) + 1))
    if used != declared:
        yield Complaint(
            path,
            1,
            f"the header declares {_numbers(declared)}, the statement uses {_numbers(used)}",
        )
    yield from _schema_rules(path, code)
    if ";" in code:
        yield Complaint(path, text.count("\n"), "one statement, no semicolon")


def _migration_rules(path: Path, text: str) -> Iterator[Complaint]:
    if not re.fullmatch(r"\d{4}_[a-z0-9_]+", path.stem):
        yield Complaint(path, 1, "a migration's name is 0000_what")
    lines = text.split("\n")
    for place, word in enumerate(("why", "locks")):
        if len(lines) <= place or not re.match(rf"-- {word}: \S", lines[place]):
            yield Complaint(path, place + 1, f'line {place + 1} is "-- {word}: …"')


def _head_rule(path: Path, text: str) -> Iterator[Complaint]:
    if not text.startswith(f"-- {path.stem}: "):
        yield Complaint(path, 1, f'the first line is "-- {path.stem}: what it does"')


def _function_rules(path: Path, text: str) -> Iterator[Complaint]:
    made = re.findall(r"^CREATE (?:OR REPLACE )?FUNCTION (\S+?)\(", text, re.MULTILINE)
    name = f"{SCHEMAS.get(path.parent.parent.name, SCHEMAS[''])}.{path.stem}"
    if made != [name] or "\nCREATE OR REPLACE FUNCTION " not in text:
        yield Complaint(path, 1, f"it is one CREATE OR REPLACE FUNCTION {name}")
    head = text.partition("\nAS $$\n")[0]
    # Setting it takes time at each call: one that runs as its caller may name all schemas instead.
    names_schemas = not _unqualified(_without_comments_and_literals(text))
    if _FIXED_PATH not in head and ("SECURITY DEFINER" in head or not names_schemas):
        yield Complaint(path, 1, f"a function has {_FIXED_PATH}")
    if not text.endswith("\n$$;\n"):
        yield Complaint(
            path, text.count("\n"), 'nothing comes after the function, which ends with "$$;"'
        )


def _unused_and_missing() -> Iterator[Complaint]:
    files: dict[str, Path] = {}
    for part in SCHEMAS:
        for path in sorted((SQL / part / "queries").glob("*.sql")):
            if path.stem in files:
                yield Complaint(path, 1, f"{files[path.stem].relative_to(ROOT)} has the same name")
            files[path.stem] = path
    uses = {
        name: (path, line)
        for path in sorted(STORAGE.rglob("*.py"))
        for name, line in _names_asked_for(path)
    }
    for name in sorted(files.keys() - uses.keys()):
        yield Complaint(files[name], 1, "no storage call uses this query")
    for name in sorted(uses.keys() - files.keys()):
        yield Complaint(*uses[name], f"there is no query {name}.sql")


def _names_asked_for(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _CALLERS
        ):
            place = _CALLERS[node.func.id]
            argument = node.args[place] if len(node.args) > place else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value, node.lineno


def _leading_comments(text: str) -> list[str]:
    """Those before the statement; a line indented by two spaces continues the one before."""
    comments: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("-- "):
            break
        if line.startswith("--   ") and comments:
            comments[-1] += " " + line[2:].strip()
        else:
            comments.append(line.removeprefix("-- "))
    return comments


def _without_comments_and_literals(text: str) -> str:
    return _NOT_CODE.sub(lambda found: "\n" * found[0].count("\n") or "''", text)


def _numbers(numbers: set[int]) -> str:
    return ", ".join(f"${number}" for number in sorted(numbers)) or "no parameters"


def main() -> int:
    """Print the complaints; 1 when there are any."""
    complaints = check_everything()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
