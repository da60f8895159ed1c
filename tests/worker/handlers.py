"""An app whose handlers run in all three executors; at the top of a module, so that processes can
import it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry import trace
from pydantic import BaseModel

from hybrid_runner import Cancel, Fail, Job, Retry, Runner, Snooze


class Pair(BaseModel):
    left: int
    right: int


@dataclass
class Triple:
    left: int
    middle: int
    right: int


class NoCard(Fail):
    """An outcome of an application's own, made of something else than a reason."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no card {number}")


class CannotBeRead(Exception):
    """Can be pickled; reading that fails."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} {right}")


app = Runner("postgresql://nobody@localhost/never-opened")


@app.job("add")
async def add(payload: Pair) -> int:
    return payload.left + payload.right


@app.job("add_in_thread")
def add_in_thread(payload: Triple, job: Job) -> dict[str, Any]:
    job.progress(0.5, "half")
    return {
        "sum": payload.left + payload.middle + payload.right,
        "main": threading.current_thread() is threading.main_thread(),
    }


@app.job("add_in_process", executor="process")
def add_in_process(payload: dict[str, int], job: Job) -> dict[str, int]:
    job.progress(0.5, "half")
    return {"sum": payload["left"] + payload["right"], "pid": os.getpid(), "attempt": job.attempt}


@app.job("die_in_process", executor="process", max_attempts=1)
def die_in_process(payload: dict[str, int]) -> None:
    os._exit(payload.get("code", 9))


@app.job("hang_in_process", executor="process", max_attempts=1, timeout=0.5, limits="default")
def hang_in_process(payload: dict[str, str]) -> None:
    Path(payload["pid_file"]).write_text(str(os.getpid()))
    threading.Event().wait()


@app.job("raise_in_process", executor="process", max_attempts=1)
def raise_in_process(payload: Any) -> None:
    raise SystemExit(f"no {payload['what']}")


@app.job("where_am_i", executor="process")
def where_am_i(_: Any) -> str:
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}-{context.span_id:016x}"


@app.job("decide_in_process", executor="process")
def decide_in_process(payload: dict[str, str], job: Job) -> str:
    return decide_deep_down(payload["what"], job)


@app.job("miscount_in_process", executor="process")
def miscount_in_process(_: Any) -> int:
    return "three"  # type: ignore[return-value]  # as somebody without a type checker would


@app.job("decide_in_thread")
def decide_in_thread(payload: dict[str, str], job: Job) -> str:
    return decide_deep_down(payload["what"], job)


@app.job("decide")
async def decide(payload: dict[str, str], job: Job) -> str:
    return decide_deep_down(payload["what"], job)


def refuse() -> None:
    raise Fail("no card")


@contextlib.contextmanager
def note_where() -> Iterator[None]:
    """Sets the traceback of what passes through, as contextlib does."""
    yield


def decide_deep_down(what: str, job: Job) -> str:
    """Say it from three calls below the handler."""

    def deeper() -> str:
        match what:
            case "fail":
                raise Fail("no such card")
            case "cancel":
                raise Cancel(reason="no longer wanted")
            case "retry" if job.attempt == 1:
                raise Retry(after=0.01, reason="busy")
            case "snooze" if job.data is None:
                raise Snooze("10ms", data={"seen": [1, 2]})
            case _:
                say_oddly(what)
                return f"{job.attempt} {job.data}"

    with note_where():
        return deeper()


def say_oddly(what: str) -> None:
    """Say what is harder to bring home."""
    match what:
        case "fail from":
            try:
                dict[str, int]()["card"]
            except KeyError as error:
                raise Fail("no such card") from error
        case "fail in own words":
            raise NoCard(7)
        case "unsendable":
            raise Snooze("1s", data=threading.Lock())
        case "unreadable":
            raise Snooze("1s", data=CannotBeRead(1, 2))


async def _done(_: Any) -> str:
    return "done"


@app.job("wrapped_in_process", executor="process")
def wrapped_in_process(payload: Any) -> Any:
    return _done(payload)
