"""Passwords leave the log whatever way they came into it."""

from __future__ import annotations

import logging
import sys
import threading

import orjson
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from hybrid_runner.errors import RunnerError
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.telemetry.logs.lines import ConsoleLines, JsonLines
from hybrid_runner.telemetry.logs.redaction import HIDDEN, Redaction, header_values
from hybrid_runner.telemetry.logs.setup import configure_logs, log

PASSWORD = "Wombat/7@?#'x"
"""With characters that each form of a DSN writes differently."""
ENCODED = "Wombat%2F7%40%3F%23%27x"
DSN = f"postgresql://me:{ENCODED}@db.example:5432/jobs"


@pytest.mark.parametrize(
    "text",
    [
        PASSWORD,
        ENCODED,
        f"cannot connect to {DSN}: refused",
        f"postgresql://me:{PASSWORD}@db.example/jobs",
        f"repr {PASSWORD!r}",
        f"postgres://me:{ENCODED}@one,two/jobs?sslmode=require",
        f"invalid literal for int() with base 10: '{PASSWORD}'",
    ],
)
def test_a_known_password_is_hidden_in_every_form(text: str) -> None:
    assert "Wombat" not in Redaction([DSN]).clean(text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgresql://me:unknown@host/db", f"postgresql://me:{HIDDEN}@host/db"),
        ("postgresql://me:un@known@host/db", f"postgresql://me:{HIDDEN}@host/db"),
        ("redis://me:unknown@host/0 is down", f"redis://me:{HIDDEN}@host/0 is down"),
        ("host=h password=unknown user=me", f"host=h password={HIDDEN} user=me"),
        ("host=h password='un known' user=me", f"host=h password={HIDDEN} user=me"),
        ("PGPASSWORD=unknown psql", f"PGPASSWORD={HIDDEN} psql"),
        ("?user=me&password=unknown&sslmode=off", f"?user=me&password={HIDDEN}&sslmode=off"),
        ('{"password": "unknown", "user": "me"}', f'{{"password": {HIDDEN}, "user": "me"}}'),
        (
            "password authentication failed for user me",
            "password authentication failed for user me",
        ),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
    ],
)
def test_an_unknown_password_is_hidden_where_it_stands_as_one_and_nothing_else_is(
    text: str, clean: str
) -> None:
    assert Redaction().clean(text) == clean


def test_a_password_that_is_a_name_or_part_of_a_word_does_not_eat_the_log() -> None:
    """As on a developer's machine: the user, the database or the product itself."""
    redaction = Redaction(
        ["postgresql://postgres:postgres@localhost/postgres", "postgresql://me:art@host/db"]
    )
    assert (
        redaction.clean("postgres starts the party on postgresql 18")
        == "postgres starts the party on postgresql 18"
    )
    assert redaction.clean("art") == HIDDEN


def test_the_password_of_the_environment_is_hidden() -> None:
    assert Redaction(secrets=["Wombat", None]).clean("it is Wombat") == f"it is {HIDDEN}"


def test_what_headers_of_exporters_hold_is_hidden_and_short_names_are_not() -> None:
    values = header_values(
        "authorization: Bearer"
        " sEcReT-token-123,x-api-key=abc%20123456789012345,X-Scope-OrgID=default"
    )
    clean = Redaction(secrets=values).clean(
        "Bearer sEcReT-token-123, 123456789012345 and abc%20123456789012345 of default"
    )
    assert clean == f"Bearer {HIDDEN}, {HIDDEN} and {HIDDEN} of default"


def test_the_headers_of_exporters_are_known_to_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The SDK quotes the whole variable when it cannot read it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization: Bearer sEcReT-token-123")
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
    assert "sEcReT" not in said


def test_json_lines_stay_json_and_hide_passwords_wherever_a_value_holds_one() -> None:
    record = logging.makeLogRecord(
        {
            "msg": "to %s",
            "args": (DSN,),
            "levelname": "INFO",
            "password": "unknown",
            "nested": {"password": 'a"b', "dsn": [DSN, 5], 7: PASSWORD},
            "thing": ValueError(PASSWORD),
        }
    )
    line = orjson.loads(JsonLines(Redaction([DSN])).format(record))
    assert line["nested"] == {
        "password": HIDDEN,
        "dsn": [f"postgresql://me:{HIDDEN}@db.example:5432/jobs", 5],
        "7": HIDDEN,
    }
    assert (line["password"], line["thing"]) == (HIDDEN, HIDDEN)
    assert "Wombat" not in str(line)


def test_an_exception_below_a_console_line_is_cleaned_too() -> None:
    error = RunnerError(f"cannot use {DSN}")
    record = logging.makeLogRecord(
        {"msg": "it failed", "levelname": "ERROR", "exc_info": (RunnerError, error, None)}
    )
    text = ConsoleLines(Redaction(), colours=False).format(record)
    assert "RunnerError" in text
    assert "Wombat" not in text


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:Wombat/7@127.0.0.1:1/jobs",
        "postgresql://me:Wombat7#x@127.0.0.1:1/jobs",
        "postgresql://me:Wom@bat7@127.0.0.1:1/jobs",
        "postgresql://me:Wombat7@127.0.0.1:1/jobs",
        "postgresql://127.0.0.1:1/jobs?user=me&password=Wombat7",
        "postgresql://me:Wombat7@127.0.0.1:99999/jobs",
        "postgresql://me:Wombat7@127.0.0.1:1/jobs?target_session_attrs=Wombat7",
        "host=127.0.0.1 password=Wombat7",
        "mysql://me:Wombat7@127.0.0.1/jobs",
    ],
)
async def test_what_cannot_be_connected_to_is_said_without_its_password(dsn: str) -> None:
    """For whoever has logs of their own: the error itself is clean. A password with a slash cannot
    be read as one.
    """
    with pytest.raises(RunnerError) as raised:
        await connect(dsn)
    assert "ombat" not in str(raised.value)
    assert "bat7" not in str(raised.value)


def test_settings_can_be_shown() -> None:
    assert "Wombat" not in repr(Settings.load({}, dsn=DSN, listen_dsn=DSN))
