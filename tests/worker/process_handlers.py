"""Handlers in processes that do to their process, and by it to their worker, what programs do."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from hybrid_runner import Job, Runner

app = Runner()
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@app.job("terminate", executor="process", max_attempts=1)
def terminate(_: Any) -> int:
    """Start a program and end it with SIGTERM, as `Popen.terminate` does."""
    child = subprocess.Popen(SLEEP)
    child.terminate()
    return child.wait(120)


@app.job("start_and_wait", executor="process", max_attempts=1)
def start_and_wait(payload: dict[str, Any]) -> None:
    """Start programs and write their numbers down, then wait or end as is asked for."""
    own = payload.get("session", False)
    program = subprocess.Popen(SLEEP, start_new_session=own)
    fork = os.fork()
    if fork == 0:
        if own:
            os.setsid()
        time.sleep(600)
        os._exit(0)
    while own and os.getsid(fork) != fork:
        time.sleep(0.001)
    write(payload["file"], f"{os.getpid()} {program.pid} {fork}")
    match payload.get("then"):
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hold the interpreter":
            ctypes.PyDLL(None).sleep(600)
        case _:
            program.wait()


def write(file: str, text: str) -> None:
    """Whoever reads it sees all of it or nothing."""
    Path(f"{file}.new").write_text(text)
    Path(f"{file}.new").rename(file)


def double(number: int) -> int:
    return 2 * number


@app.job("multiply", executor="process", max_attempts=1)
def multiply(payload: str) -> list[int]:
    """Use multiprocessing."""
    if payload == "futures":
        with ProcessPoolExecutor(2) as executor:
            return list(executor.map(double, [1, 2]))
    # The end of this block calls `terminate` of its processes, which is SIGTERM.
    with multiprocessing.get_context(payload).Pool(2) as pool:
        return pool.map(double, [1, 2])


@app.job("add", executor="process", max_attempts=1)
def add(payload: list[int]) -> int:
    return sum(payload)


def pipes() -> Iterator[socket.socket]:
    """The sockets of this process, the connection to its worker among them."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if str(descriptor.readlink()).startswith("socket:"):
                yield socket.socket(fileno=os.dup(int(descriptor.name)))


class Bomb:
    """Runs a command wherever it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (self.command,)


@app.job("say", executor="process", max_attempts=1)
def say(payload: dict[str, Any]) -> None:
    """Write into the connection what no message is, then go on for ever."""
    match payload["what"]:
        case "pickle":
            content = pickle.dumps(("outcome", Bomb(f"touch {payload['file']}")))
            content = len(content).to_bytes(4) + content
        case "rubbish":
            content = b"\x00\x00\x00\x05hello"
        case "another outcome":
            text = b'{"type":"ended","job":%d,"claim":%d,"completed_by_handler":false,"outcome":7}'
            text %= (payload["job"], payload["claim"])
            content = len(text).to_bytes(4) + text
        case "a length beyond all bounds":
            content = b"\xff\xff\xff\xff"
        case "nothing more":
            for pipe in pipes():
                pipe.shutdown(socket.SHUT_RDWR)
            content = b""
        case _:
            raise AssertionError(payload)
    for pipe in pipes():
        pipe.sendall(content)
    threading.Event().wait()


@app.job("flood", executor="process", max_attempts=1)
def flood(payload: dict[str, str], job: Job) -> str:
    """Report without end, until a file is there."""
    file = Path(payload["file"])
    while not file.exists():
        for _ in range(1000):
            job.progress(0.5, "x" * 500)
    return "flooded"


@app.job("quick")
async def quick(_: Any) -> str:
    return "ok"


@app.job("fork_and_return", executor="process", max_attempts=1)
def fork_and_return(_: Any) -> str:
    """Return twice."""
    return "child" if os.fork() == 0 else "parent"


@app.job("report_later", executor="process", max_attempts=1)
def report_later(_: Any, job: Job) -> int:
    """Leave a thread behind that goes on reporting."""

    def report() -> None:
        while True:
            job.progress(0.9, "of the job before")
            time.sleep(0.001)

    threading.Thread(target=report, daemon=True).start()
    return os.getpid()


@app.job("wait_a_little", executor="process", max_attempts=1)
def wait_a_little(_: Any, job: Job) -> int:
    job.progress(0.1, "of this job")
    time.sleep(0.3)
    return os.getpid()
