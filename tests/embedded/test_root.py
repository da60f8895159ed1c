"""Root uses an embedded Postgres, which refuses to run as root."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hybrid_runner.embedded import EmbeddedError, default_data_directory
from hybrid_runner.embedded.account import NOBODY, WITHOUT_NAMESPACES, Account, accepted_account
from hybrid_runner.embedded.binaries import BINARIES_VARIABLE, find_binaries
from tests.embedded.users import Use, ask, keeper, postmaster, wait_until_stopped
from tests.support.outside import missing

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="about running as root"),
]


def test_root_without_namespaces_and_a_private_home_uses_var_lib(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.chmod(0o700)
    for name in ("XDG_DATA_HOME", "HYBRID_RUNNER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv(WITHOUT_NAMESPACES, "1")
    assert default_data_directory() == Path("/var/lib/hybrid-runner/postgres")


def test_root_in_a_namespace_hands_its_data_to_nobody_and_does_not_take_it_back(
    own: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What uid 65534 may have written is not for a server whose files are root's."""
    if os.environ.get(WITHOUT_NAMESPACES):
        pytest.skip(f"{WITHOUT_NAMESPACES} says to do without")
    if accepted_account() is not Account.NAMESPACE:
        missing("user namespaces are refused here")
    postgres = use(own)
    ask(postgres.dsn, "CREATE TABLE kept_by_root AS SELECT 7 AS number")
    for owner, without in ((0, ""), (NOBODY, "1"), (NOBODY, "")):
        postgres.close()
        wait_until_stopped(own)
        monkeypatch.setenv(WITHOUT_NAMESPACES, without)
        postgres = use(own)
        assert Path(f"/proc/{postmaster(own)}").stat().st_uid == owner
        assert (own / "data/base").stat().st_uid == owner
        assert ask(postgres.dsn, "SELECT number FROM kept_by_root") == 7


def test_root_as_nobody_starts_from_nothing_with_binaries_it_cannot_reach(
    empty: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = empty / "private"
    private.mkdir(mode=0o700)
    programs = find_binaries().directory
    package = programs.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        (private / part.name).symlink_to(part)
    monkeypatch.setenv(BINARIES_VARIABLE, str(private / programs.relative_to(package.parent)))
    monkeypatch.setenv(WITHOUT_NAMESPACES, "1")
    postgres = use(empty)
    assert ask(postgres.dsn, "SELECT 1") == 1
    executable = Path(f"/proc/{postmaster(empty)}/exe").readlink()
    assert str(executable).startswith(f"{empty}/binaries-")
    # A change of user must not have cleared the tie to the keeper.
    os.kill(keeper(empty), signal.SIGKILL)
    wait_until_stopped(empty)


def test_folder_uid_65534_cannot_enter_is_one_line(
    empty: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.chmod(0o700)
    monkeypatch.setenv(WITHOUT_NAMESPACES, "1")
    with pytest.raises(
        EmbeddedError, match=f"uid 65534 cannot enter {empty}: set HYBRID_RUNNER_DATA_DIR"
    ):
        use(empty)
