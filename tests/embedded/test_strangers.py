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
from hybrid_runner.embedded import EmbeddedError, default_data_directory
from tests.embedded.users import Use

STRANGER = 12345
FILES = ("start.lock", "users.lock", "keeper.lock", "server.lock", "postgres.log")
AS_NOBODY = """
import pathlib, sys
from hybrid_runner.embedded import EmbeddedError, use_embedded
from hybrid_runner.embedded.account import Account, become
become(Account.NOBODY)
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
        with pytest.raises(EmbeddedError, match=f"{own} belongs to uid {STRANGER}, who could have"):
            use(own)
    finally:
        os.chown(own, 0, 0)


@as_root
def test_root_uses_no_data_directory_of_a_stranger_in_a_folder_of_its_own(
    own: Path, use: Use
) -> None:
    give(own / "data", STRANGER)
    with pytest.raises(EmbeddedError, match=f"{own}/data belongs to uid {STRANGER}, who could"):
        use(own)


@as_root
def test_root_uses_no_link_to_a_data_directory(own: Path, use: Use) -> None:
    (own / "data").rename(own / "elsewhere")
    (own / "data").symlink_to(own / "elsewhere")
    with pytest.raises(EmbeddedError, match=f"{own}/data is no folder"):
        use(own)


@as_root
def test_root_uses_no_folder_below_one_of_a_stranger(empty: Path, use: Use) -> None:
    """The stranger could put another one in its place."""
    (empty / "theirs").mkdir()
    os.chown(empty / "theirs", STRANGER, STRANGER)
    with pytest.raises(EmbeddedError, match=f"{empty}/theirs belongs to uid {STRANGER}"):
        use(empty / "theirs/hybrid-runner/postgres")
    assert not list((empty / "theirs").iterdir())


@as_root
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_root_uses_no_folder_that_others_may_write_to(empty: Path, use: Use, mode: int) -> None:
    empty.chmod(mode)
    with pytest.raises(EmbeddedError, match=f"others may write to {empty}"):
        use(empty)
    with pytest.raises(EmbeddedError, match=f"others may write to {empty}"):
        use(empty / "below")


@as_root
def test_root_with_the_home_of_somebody_else_uses_var_lib(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems' sudo leaves HOME as it is."""
    for name in ("XDG_DATA_HOME", "HYBRID_RUNNER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(empty))
    assert default_data_directory() == empty / ".local/share/hybrid-runner/postgres"
    os.chown(empty, STRANGER, STRANGER)
    try:
        assert default_data_directory() == Path("/var/lib/hybrid-runner/postgres")
    finally:
        os.chown(empty, 0, 0)


@as_root
def test_a_user_uses_no_folder_of_a_stranger(empty: Path) -> None:
    """Not root: nobody's Postgres would refuse the data, but a server of the stranger's could
    answer in its place.
    """
    os.chown(empty, STRANGER, STRANGER)
    empty.chmod(0o777)
    environment = os.environ | {"PYTHONPATH": str(Path(hybrid_runner.__file__).parent.parent)}
    command = [sys.executable, "-c", AS_NOBODY, str(empty)]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    finally:
        os.chown(empty, 0, 0)
        empty.chmod(0o755)
    assert f"{empty} belongs to uid {STRANGER}" in ended.stdout


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
