"""F2 F6: a real Docker Engine, and the testcontainers that tests use where one answers."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.engine import Engine
from tests.support.outside import REQUIRE_VARIABLE, missing
from tests.support.server import DSN_VARIABLE, SERVER_VARIABLE, choose_server


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a developer's machine."""
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    monkeypatch.delenv(SERVER_VARIABLE, raising=False)


def test_the_engine_runs_a_container_and_tells_what_it_said(docker_engine: Engine) -> None:
    said = docker_engine.docker(
        "run",
        "--rm",
        "python:3.11-slim-bookworm",
        "python",
        "-c",
        "import sys; print(sys.version_info[:2])",
    )
    assert said == "(3, 11)"


def test_a_command_that_fails_says_why(docker_engine: Engine) -> None:
    with pytest.raises(AssertionError, match="No such container"):
        docker_engine.docker("stop", "nobody-made-this")


def test_there_is_a_compose_that_knows_health_checks(docker_engine: Engine) -> None:
    assert int(docker_engine.compose("version", "--short").lstrip("v").partition(".")[0]) >= 2


def test_where_an_engine_answers_tests_get_their_postgres_from_testcontainers(
    docker_engine: Engine, nothing_said: None
) -> None:
    choice = choose_server()
    assert choice.what == "postgres:18 in a container"
    server = choice.start()
    try:
        [container] = docker_engine.docker(
            "ps", "--quiet", "--filter", "ancestor=postgres:18"
        ).splitlines()
        with server.administrator() as connection:
            assert connection.execute(
                "SELECT current_setting('server_version_num')::int / 10000"
            ).fetchone() == (18,)
            assert connection.execute("SELECT current_setting('fsync')").fetchone() == ("off",)
    finally:
        server.stop()
    assert container not in docker_engine.docker("ps", "--all", "--quiet").splitlines()
    with pytest.raises(psycopg.OperationalError), server.administrator():
        pass


@pytest.mark.parametrize(
    ("word", "what"), [("container", "postgres:18 in a container"), ("embedded", "an embedded one")]
)
def test_a_server_can_be_asked_for_by_name(
    word: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SERVER_VARIABLE, word)
    assert choose_server().what.startswith(what)


def test_another_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER_VARIABLE, "contianer")
    with pytest.raises(pytest.UsageError, match="'contianer': say container or embedded"):
        choose_server()


def test_a_named_server_comes_first(nothing_said: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN_VARIABLE, "postgresql://nobody@nowhere/nothing")
    assert choose_server().what == f"the server named by {DSN_VARIABLE}"


def test_without_an_engine_the_server_is_embedded(
    nothing_said: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nobody/listens/here")
    assert (
        choose_server().what
        == "an embedded one (SKIPPED: testcontainers, no container engine answers)"
    )


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_what_is_missing_is_skipped_and_where_nothing_may_be_it_fails(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REQUIRE_VARIABLE, required)
    with pytest.raises(
        (pytest.skip.Exception, pytest.fail.Exception), match="there is no such thing"
    ) as raised:
        missing("there is no such thing")
    assert raised.type is outcome
