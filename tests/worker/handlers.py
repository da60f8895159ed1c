"""An app whose handlers run in all three executors; at the top of a module, so that processes can import it."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry import trace
from pydantic import BaseModel

from hybrid_runner import Job, Runner


class Pair(BaseModel):
    left: int
    right: int


@dataclass
class Triple:
    left: int
    middle: int
    right: int


app = Runner("postgresql://nobody@localhost/never-opened")


@app.job("add")
async def add(payload: Pair) -> int:
    return payload.left + payload.right


@app.job("add_in_thread")
def add_in_thread(payload: Triple, job: Job) -> dict[str, Any]:
    job.progress(0.5, "half")
    return {"sum": payload.left + payload.middle + payload.right, "main": threading.current_thread() is threading.main_thread()}


@app.job("add_in_process", executor="process")
def add_in_process(payload: dict[str, int], job: Job) -> dict[str, int]:
    job.progress(0.5, "half")
    return {"sum": payload["left"] + payload["right"], "pid": os.getpid(), "attempt": job.attempt}


@app.job("die_in_process", executor="process", max_attempts=1)
def die_in_process(payload: dict[str, int]) -> None:
    os._exit(payload.get("code", 9))


@app.job("hang_in_process", executor="process", max_attempts=1, timeout=0.5)
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
