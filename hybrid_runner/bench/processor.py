"""Processor time and memory of processes, read from /proc; None where there is none."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def seconds_of(pid: int) -> float | None:
    """Processor seconds that a process has used so far."""
    fields = _stat(pid)
    return (
        None if fields is None else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    )


def seconds_of_threads(pid: int) -> float | None:
    """Processor seconds of a process's living threads. Where the kernel counts nanoseconds this is
    precise enough for a process that does next to nothing.
    """
    try:
        counts = [
            path.read_text(encoding="utf-8").split()
            for path in (PROC / str(pid) / "task").glob("*/schedstat")
        ]
    except OSError:
        counts = []
    precise = sum(int(count[0]) for count in counts) / 1e9
    return precise or seconds_of(pid)


def seconds_of_server(backend: int) -> float | None:
    """Processor seconds of the whole Postgres that this backend belongs to, including ended
    backends.
    """
    fields = _stat(backend)
    # On another machine: here the number is that of another process.
    if fields is None or not _is_postgres(backend):
        return None
    parent = int(fields[1])
    postmaster = _stat(parent)
    if postmaster is None:
        return None
    ticks = sum(int(postmaster[place]) for place in (11, 12, 13, 14))
    for folder in PROC.iterdir():
        child = _stat(int(folder.name)) if folder.name.isdecimal() else None
        if child is not None and int(child[1]) == parent:
            ticks += int(child[11]) + int(child[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int | None:
    """Bytes that a process holds in memory."""
    try:
        lines = (PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), None)


def _is_postgres(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "comm").read_text(encoding="utf-8").startswith("postgres")
    except OSError:
        return False


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name, which may contain spaces."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
