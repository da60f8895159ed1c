"""tools/with_engine, with an engine that only does to the network what Docker does, in a network of
its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.outside import missing

TOOLS = Path(__file__).parents[2] / "tools"
ENGINE = """#!/bin/bash
change() {
    iptables -P FORWARD DROP
    for table in filter nat; do iptables -t $table -N "$1"; done
    iptables -A FORWARD -j "$1"
    ip link add "$2" type bridge
    echo 1 >/proc/sys/net/ipv4/ip_forward
}
trap 'change DOCKER-USER br-0123456789ab; kill $waiting; exit' TERM
change DOCKER docker0
touch "$XDG_CACHE_HOME/up"
sleep 60 &
waiting=$!
wait
"""
ANSWERS = """#!/bin/bash
[ "$1" != version ] || [ -e "$XDG_CACHE_HOME/up" ]
"""
ASKED = """
state() {
    { iptables-save; ip6tables-save; } | grep -v '^#'
    ip -o link show type bridge | cut -d : -f 2
    cat /proc/sys/net/ipv4/ip_forward
}
export -f state
echo 0 >/proc/sys/net/ipv4/ip_forward
iptables -A INPUT -i lo -j ACCEPT
ip link add kept type bridge
state >"$XDG_CACHE_HOME/before"
"$TOOLS/with_engine" bash -c 'state >"$XDG_CACHE_HOME/during"; eval "$COMMAND"'
result=$?
state >"$XDG_CACHE_HOME/after"
exit $result
"""
ALONE = ("unshare", "--net")


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A checkout's tools, with a cache in which that engine lies."""
    if not all(map(shutil.which, ("unshare", "setpriv", "iptables", "ip"))):
        missing("no iptables, or nothing to try them with")
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        missing("no network of one's own to be had here")
    programs = tmp_path / "cache" / "hybrid-runner-ci" / "engine" / "programs"
    program(programs / "usr" / "sbin" / "dockerd", ENGINE)
    program(programs / "usr" / "bin" / "docker", ANSWERS)
    program(tmp_path / "tools" / "images" / "make", "#!/bin/bash\n")
    for name in ("with_engine", "fetch/cache.sh"):
        (tmp_path / "tools" / name).parent.mkdir(exist_ok=True)
        shutil.copy(TOOLS / name, tmp_path / "tools" / name)
    return tmp_path / "tools"


@pytest.mark.parametrize(
    ("command", "result"),
    [("exit 3", 3), ("kill $PPID; exec sleep 60", 143), ("kill -INT $PPID; exec sleep 60", 130)],
)
def test_the_network_is_as_it_was_once_the_engine_has_ended_and_so_has_the_command(
    command: str, result: int, tools: Path
) -> None:
    cache = tools.parent / "cache"
    environment = os.environ | {
        "DOCKER_HOST": "unix:///nobody/listens/here",
        "XDG_CACHE_HOME": str(cache),
        "TOOLS": str(tools),
        "COMMAND": command,
    }
    asked = subprocess.run(
        [*ALONE, "bash", "-c", ASKED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert asked.returncode == result, asked.stderr
    before, during, after = ((cache / name).read_text() for name in ("before", "during", "after"))
    assert "docker0" in during
    assert ":FORWARD DROP" in during
    assert before.endswith("kept\n0\n")
    assert after == before
