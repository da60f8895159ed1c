"""Folders for embedded servers: empty ones, and ones with a database."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner.embedded import EmbeddedPostgres, use_embedded
from tests.embedded.users import OtherProcess, wait_until_stopped


def new_folder() -> Iterator[Path]:
    """Short enough for a socket."""
    directory = Path(tempfile.mkdtemp(prefix="hr-"))
    yield directory
    wait_until_stopped(directory)
    shutil.rmtree(directory)


@pytest.fixture
def empty() -> Iterator[Path]:
    """A folder nobody used yet."""
    yield from new_folder()


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    for directory in new_folder():
        use_embedded(directory).close()
        yield directory


@pytest.fixture
def folder(template: Path) -> Iterator[Path]:
    """A folder with a database that other tests use too: leave it able to start."""
    wait_until_stopped(template)
    (template / "postgres.log").unlink()
    yield template
    wait_until_stopped(template)


@pytest.fixture
def own(empty: Path, template: Path) -> Path:
    """A folder with a database to change and to break."""
    wait_until_stopped(template)
    shutil.copytree(template / "data", empty / "data")
    return empty


@pytest.fixture
def use() -> Iterator[Callable[..., EmbeddedPostgres]]:
    """`use_embedded`, closed when the test is over."""
    shares: list[EmbeddedPostgres] = []

    def use(*arguments: Any, **options: Any) -> EmbeddedPostgres:
        shares.append(use_embedded(*arguments, **options))
        return shares[-1]

    yield use
    for share in shares:
        share.close()


@pytest.fixture
def other(folder: Path) -> Iterator[OtherProcess]:
    process = OtherProcess(folder)
    yield process
    process.kill()
