"""A PgBouncer on loopback, in front of the database under test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.accounts import not_as_root
from tests.support.outside import cache, first_program
from tests.support.ports import free_port

VARIABLE = "HYBRID_RUNNER_TEST_PGBOUNCER"


def find() -> str | None:
    """The program: the one named, else what .ci/run fetched, else an installed one."""
    fetched = cache() / "pgbouncer/usr/sbin/pgbouncer"
    return first_program(
        os.environ.get(VARIABLE), fetched, shutil.which("pgbouncer"), "/usr/sbin/pgbouncer"
    )


def why_absent() -> str:
    """One line for a person."""
    return f"there is no pgbouncer: tools/fetch/pgbouncer gets it, or {VARIABLE} names one"


@contextmanager
def pgbouncer(
    dsn: str, *, mode: str = "transaction", size: int = 3, **settings: str
) -> Iterator[str]:
    """The DSN of the same database by way of a pooler with so many connections to the server."""
    program = find()
    assert program is not None
    url = urlsplit(dsn)
    given = {name: values[0] for name, values in parse_qs(url.query).items()}
    server = {
        "host": given.get("host") or url.hostname or "127.0.0.1",
        "port": given.get("port") or url.port or 5432,
        "user": url.username or "postgres",
        "password": url.password or "",
        "dbname": url.path.removeprefix("/"),
        "pool_size": size,
    }
    port = free_port()
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": mode,
        "max_client_conn": 200,
        "server_tls_sslmode": "disable",
    } | settings
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-pgbouncer-") as folder:
        ini = Path(folder) / "pgbouncer.ini"
        target = " ".join(f"{name}={value}" for name, value in server.items() if value != "")
        text = "\n".join(f"{name} = {value}" for name, value in lines.items())
        ini.write_text(f"[databases]\npooled = {target}\n\n[pgbouncer]\n{text}\n")
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(not_as_root(program, str(ini)), stdout=log, stderr=log)
        try:
            _wait_until_open(port, process, Path(folder) / "log")
            yield f"postgresql://{server['user']}@127.0.0.1:{port}/pooled?sslmode=disable"
        finally:
            process.terminate()  # at once; SIGINT would wait for its clients
            process.wait(120)


def _wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError(f"pgbouncer ended: {log.read_text()}")
