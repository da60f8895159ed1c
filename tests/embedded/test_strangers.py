"""What another user has prepared is not used: whoever writes the settings of somebody's Postgres
runs programs as them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybrid_runner
from hybrid_runner.embedded import EmbeddedError
from tests.embedded.users import Use

STRANGER = 12345
FILES = ("start.lock", "users.lock", "keeper.lock", "server.lock", "postgres.log")
AS_ANOTHER_USER = """
import os, pathlib, sys
from hybrid_runner.embedded import EmbeddedError, use_embedded
os.setuid(65534)
try:
    use_embedded(pathlib.Path(sys.argv[1]))
except EmbeddedError as error:
    print(error)
"""
pytestmark = pytest.mark.timeout(120)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about running as root")


def give(path: Path, owner: int) -> None:
    """The folder and all in it belong to that user from now on."""
    for folder, directories, files in os.walk(path):
        for name in (*directories, *files):
            os.lchown(Path(folder) / name, owner, owner)
    os.chown(path, owner, owner)


@as_root
def test_root_uses_no_folder_of_a_stranger(own: Path, use: Use) -> None:
    """As root it would run the stranger's commands: this one, once a file of WAL is full."""
    settings = own / "data/postgresql.conf"
    settings.write_text(
        settings.read_text() + f"archive_mode = on\narchive_command = 'touch {own}/obeyed'\n"
    )
    give(own, STRANGER)
    try:
        with pytest.raises(EmbeddedError, match=f"belongs to uid {STRANGER}"):
            use(own)
    finally:
        os.chown(own, 0, 0)


@as_root
def test_postgres_of_root_refuses_data_of_a_stranger(own: Path, use: Use) -> None:
    give(own / "data", STRANGER)
    with pytest.raises(EmbeddedError, match="Postgres did not start"):
        use(own)


@as_root
def test_a_user_uses_no_folder_of_a_stranger(empty: Path) -> None:
    """Not root: nobody's Postgres would refuse the data, but a server of the stranger's could
    answer in its place.
    """
    os.chown(empty, STRANGER, STRANGER)
    empty.chmod(0o777)
    environment = os.environ | {"PYTHONPATH": str(Path(hybrid_runner.__file__).parent.parent)}
    command = [sys.executable, "-c", AS_ANOTHER_USER, str(empty)]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    finally:
        os.chown(empty, 0, 0)
        empty.chmod(0o755)
    assert f"{empty} (it belongs to uid {STRANGER})" in ended.stdout


@pytest.fixture
def victim() -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", suffix=".victim") as file:
        file.write("untouched")
        file.flush()
        yield Path(file.name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("way", ["symbolic", "hard"])
def test_a_link_in_place_of_a_lock_or_the_log_is_not_followed(
    empty: Path, use: Use, victim: Path, name: str, way: str
) -> None:
    if way == "symbolic":
        (empty / name).symlink_to(victim)
    else:
        (empty / name).hardlink_to(victim)
    before = victim.stat()
    with pytest.raises(EmbeddedError) as refused:
        use(empty)
    (empty / name).unlink()
    assert name in str(refused.value)
    assert victim.read_text() == "untouched"
    assert victim.stat().st_mtime_ns == before.st_mtime_ns
