"""Root uses an embedded Postgres, which refuses to run as root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid_runner
from tests.embedded.users import Use, ask, postmaster

# In a namespace that allows no further one, as in most containers.
WITHOUT_NAMESPACES = """
import ctypes, pathlib, sys
assert ctypes.CDLL(None).unshare(0x10000000) == 0
for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
    pathlib.Path("/proc/self", name).write_text(text)
pathlib.Path("/proc/sys/user/max_user_namespaces").write_text("0")
from hybrid_runner.embedded import EmbeddedError, use_embedded
try:
    use_embedded(pathlib.Path(sys.argv[1]))
except EmbeddedError as error:
    print(error)
"""
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="about running as root"),
]


def test_server_of_root_has_no_rights_of_root_and_its_files_stay_roots(
    empty: Path, use: Use
) -> None:
    """A folder that root alone may enter is no obstacle."""
    empty.chmod(0o700)
    postgres = use(empty)
    assert ask(postgres.dsn, "SELECT 1") == 1
    status = Path(f"/proc/{postmaster(empty)}/status").read_text()
    assert "CapEff:\t0000000000000000" in status
    assert (empty / "data").stat().st_uid == 0
    assert empty.stat().st_mode & 0o777 == 0o700


def test_root_without_namespaces_is_refused_in_one_line(empty: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(hybrid_runner.__file__).parent.parent)}
    command = [sys.executable, "-c", WITHOUT_NAMESPACES, str(empty)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    [line] = ended.stdout.splitlines()
    assert "Postgres cannot run as root where user namespaces are refused" in line
    assert line.endswith("run as another user, or set HYBRID_RUNNER_DSN")
    assert not (empty / "data").exists()
