"""A password or token of this process is hidden wherever an exception becomes text (A12)."""

from __future__ import annotations

import json
import logging
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from hybrid_runner import Fail, secrets
from hybrid_runner.errors import RunnerError
from hybrid_runner.secrets import HIDDEN, hide
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.telemetry.logs.setup import configure_logs, log
from tests.cli.running import worker
from tests.support.attached import attach_audits
from tests.support.recorded import RecordedSpans, attributes_of
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

PASSWORD, ENCODED = "Wombat/7@?#'x", "Wombat%2F7%40%3F%23%27x"
OTHER, OTHER_ENCODED = 'Numbat"8\\y', "Numbat%228%5cy"
TOKEN, FROM_PASSFILE = "tok-Quokka-0123456789", "Bilby-9x"
SECRET_PARTS = ("Wombat", "Numbat", "Quokka", "Bilby")
ALL = f"{PASSWORD} {ENCODED} {OTHER} {OTHER_ENCODED} {TOKEN}"
DSN = f"postgresql://me:{ENCODED}@db.example:5432/jobs"


@pytest.fixture(autouse=True)
def _none_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", frozenset())
    monkeypatch.setattr(secrets, "_pattern", None)


def with_login(dsn: str, login: str) -> str:
    url = urlsplit(dsn)
    return url._replace(netloc=f"{login}@{url.netloc.rpartition('@')[2]}").geturl()


def leaks(text: object) -> list[str]:
    return [part for part in SECRET_PARTS if part in str(text)]


TASKS = f"""
from hybrid_runner import Fail, Retry, Runner

app = Runner()
ALL = {ALL!r}

@app.job("raises", max_attempts=1)
async def raises(payload: dict) -> None:
    raise ValueError("cannot connect with " + ALL)

@app.job("core", executor="process", max_attempts=1)
def core(payload: dict) -> None:
    raise ValueError("cannot connect with " + ALL)

@app.job("cut", executor="process", max_attempts=1)
def cut(payload: dict) -> None:
    raise ValueError("x" * 4090 + ALL)

@app.job("fails")
async def fails(payload: dict) -> None:
    try:
        raise ValueError(ALL)
    except ValueError as error:
        raise Fail("no login as " + ALL) from error
"""


async def test_secrets_in_exceptions_are_neither_stored_nor_logged(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    user = urlsplit(dsn).username
    async with worker(
        "tasks:app",
        "--dsn",
        with_login(dsn, f"{user}:{ENCODED}"),
        "--log-level",
        "debug",
        cwd=tmp_path,
        HYBRID_RUNNER_LISTEN_DSN=with_login(dsn, f"{user}:{OTHER_ENCODED}"),
        HYBRID_RUNNER_HTTP_TOKEN=TOKEN,
    ) as process:
        await process.says("listening on")
        for kind in ("raises", "core", "cut", "fails"):
            await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ($1)", kind)
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.archive", 4)
        assert await process.ends() == 0
    rows = await database.fetch("SELECT kind, errors::text FROM hybrid_runner.archive")
    stored = {row["kind"]: row["errors"] for row in rows}
    hidden = " ".join([HIDDEN] * 5)
    assert f"cannot connect with {hidden}" in stored["raises"]
    assert f"cannot connect with {hidden}" in stored["core"]
    assert f"no login as {hidden}" in stored["fails"]
    assert leaks(stored) == []
    assert hidden in json.dumps(process.lines)
    assert leaks(json.dumps(process.lines)) == []


async def test_secrets_in_exceptions_are_neither_traced_nor_shown_in_rows(
    dsn: str, database: Connection, recorded: RecordedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    await attach_audits(database)
    app = runner(with_login(dsn, f"{urlsplit(dsn).username}:{ENCODED}"))

    @app.job("audit", max_attempts=1)
    async def audit(_: dict[str, Any]) -> None:
        raise ValueError(f"no login with {PASSWORD}")

    @app.job("fail")
    async def fail(_: dict[str, Any]) -> None:
        raise Fail(f"no login with {ENCODED}")

    async with working(app) as running:
        await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
        await app.enqueue("fail", {})
        await running.settled(2)
    row = await database.fetchval("SELECT row_to_json(a)::text FROM public.audits AS a")
    assert f"no login with {HIDDEN}" in row
    [event] = [each for each in recorded.one("run audit").events if each.name == "exception"]
    assert attributes_of(event)["exception.message"] == f"no login with {HIDDEN}"
    for name in ("run audit", "job audit", "run fail", "job fail"):
        span = recorded.one(name)
        said = [span.status.description, span.attributes, *(e.attributes for e in span.events)]
        assert leaks(list(map(str, said))) == [], name
    assert leaks([row, *caplog.messages]) == []


async def test_password_of_environment_or_passfile_is_known_once_connected(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"*:*:*:*:{FROM_PASSFILE}\n")
    passfile.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    await (await connect(dsn)).close()
    assert hide(f"no login with {FROM_PASSFILE}") == f"no login with {HIDDEN}"
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    await (await connect(dsn)).close()
    assert hide(f"no login with {PASSWORD}") == f"no login with {HIDDEN}"


@pytest.mark.parametrize(
    "dsn",
    [
        DSN,
        f"postgres://me:{ENCODED}@one,two/jobs?sslmode=require",
        f"postgresql://db.example/jobs?user=me&password={ENCODED}&sslmode=off",
    ],
)
def test_password_is_hidden_as_it_is_and_as_its_dsn_has_it(dsn: str) -> None:
    Settings.load({}, listen_dsn=dsn)
    assert leaks(hide(f"{PASSWORD} {ENCODED} {dsn}")) == []
    assert hide("me at db.example:5432 of jobs") == "me at db.example:5432 of jobs"


def test_password_within_a_longer_word_stays() -> None:
    secrets.learn_dsn("postgresql://app:python@db/jobs")
    assert hide("in cpython3: python, 'python', pw=python") == "in cpython3: ***, '***', pw=***"


def test_password_that_is_short_or_a_public_name_stays() -> None:
    Settings.load({}, dsn="postgresql://postgres:postgres@localhost/jobs")
    Settings.load({}, dsn="postgresql://me:customers@localhost/customers")
    Settings.load({}, dsn="postgresql://me:art@localhost/jobs")
    text = "postgres starts the party of customers"
    assert hide(text) == text


def test_headers_of_exporters_are_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The SDK quotes a header that it cannot read."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b, authorization: Bearer Quokka-123")
    secrets.learn_environment()
    root, hooks = logging.getLogger(), (threading.excepthook, sys.unraisablehook)
    before, level, own_level = root.handlers[:], root.level, log.level
    try:
        configure_logs("info", "json")
        OTLPSpanExporter()
    finally:
        root.handlers[:], root.level = before, level
        log.setLevel(own_level)
        threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(capture=False)
    said = capsys.readouterr().err
    assert "Header format invalid" in said
    assert leaks(said) == []


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:Wombat/7@127.0.0.1:1/jobs",
        "postgresql://me:Wombat7#x@127.0.0.1:1/jobs",
        "postgresql://me:Wom@bat7@127.0.0.1:1/jobs",
        "postgresql://me:Wombat7@127.0.0.1:1/jobs",
        "postgresql://127.0.0.1:1/jobs?user=me&password=Wombat7",
        "postgresql://me:Wombat7@127.0.0.1:99999/jobs",
        "postgresql://me:Wombat7@[::1/jobs",
        "postgresql://me:Wombat7@127.0.0.1:1/jobs?target_session_attrs=Wombat7",
        "host=127.0.0.1 password=Wombat7",
        "mysql://me:Wombat7@127.0.0.1/jobs",
    ],
)
async def test_dsn_that_cannot_be_used_is_refused_without_its_password(dsn: str) -> None:
    with pytest.raises(RunnerError) as raised:
        await connect(dsn)
    assert "ombat" not in str(raised.value)
    assert "bat7" not in str(raised.value)


def test_settings_are_shown_without_passwords() -> None:
    assert leaks(repr(Settings.load({}, dsn=DSN, listen_dsn=DSN, http_token=TOKEN))) == []
