"""One list of options drives the signature, the page and the command line; and another one the
settings.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import SecretStr

from hybrid_runner import ConfigurationError, Settings
from hybrid_runner.cli.commands import enqueue
from hybrid_runner.cli.parsing import Parser
from hybrid_runner.handlers.options import EnqueueOptions, option_texts
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.settings import SettingOptions
from tests.docs.blocks import ROOT
from tests.support.working import runner

NOT_OF_THE_JOB = {"connection", "on_conflict", "max_wait", "max_items", "unique_for"}


def test_the_page_has_every_option_with_its_text() -> None:
    page = (ROOT / "docs" / "enqueue.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    wanted = [f"| `{name}` | {text} |" for name, text in option_texts().items()]
    assert [row for row in rows if row in wanted] == wanted


@pytest.mark.parametrize("name", sorted(EnqueueOptions.__optional_keys__ - {"connection"}))
def test_the_command_line_has_every_option_with_its_text(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="enqueue")
    enqueue.configure(parser)
    with pytest.raises(SystemExit):
        parser.parse(["--help"])
    said = "".join(capsys.readouterr().out.split())
    assert f"--{name.replace('_', '-')}" in said
    assert "".join(option_texts()[name].replace("`", "").split()) in said


def test_an_option_is_a_field_of_a_new_job() -> None:
    assert EnqueueOptions.__optional_keys__ - NOT_OF_THE_JOB == set(NewJob.__slots__) - {
        "kind",
        "payload",
        "traceparent",
    }


def accepted(annotation: Any) -> set[Any]:
    """What an argument may be, where the setting is this."""
    parts = (
        {part for part in get_args(annotation) if part is not type(None)}
        if get_args(annotation)
        else {annotation}
    )
    if any(timedelta in (part, *get_args(part)) for part in parts):
        return {timedelta, float, int, str}
    if Path in parts or SecretStr in parts:
        return parts | {str}
    words = {part for part in parts if get_origin(part) is Literal}
    return (parts - words).union(*map(get_args, words))


def test_the_arguments_of_a_runner_are_its_settings() -> None:
    hints = get_type_hints(SettingOptions)
    del hints["tuning"]
    assert list(hints) == [name for name in Settings.fields() if name != "dsn"]
    for name, hint in hints.items():
        given = {each for part in get_args(hint) for each in (get_args(part) or (part,))} - {
            type(None)
        }
        assert given == accepted(Settings.fields()[name].annotation), name


async def test_more_than_the_handler_allows_is_refused_where_the_handler_is_known(
    dsn: str,
) -> None:
    app = runner(dsn)

    @app.job("bounded", max_attempts=3, timeout="10s")
    async def bounded(payload: dict[str, int]) -> None: ...

    @app.job("open", max_attempts=3, timeout="10s", limits="default")
    async def unbounded(payload: dict[str, int]) -> None: ...

    async with app:
        with pytest.raises(ConfigurationError, match="max_attempts of 3 at most, not 4"):
            await app.enqueue(bounded, {}, max_attempts=4)
        with pytest.raises(ConfigurationError, match="timeout of 0:00:10 at most, not 0:00:11"):
            await app.enqueue_many(bounded, [{}], timeout="11s")
        with pytest.raises(ConfigurationError, match="max_attempts of 3 at most"):
            await app.enqueue_many(bounded, [NewJob("bounded", "{}", max_attempts=4)])
        await app.enqueue(bounded, {}, max_attempts=3, timeout="10s")
        await app.enqueue(unbounded, {}, max_attempts=1000, timeout="1d")
