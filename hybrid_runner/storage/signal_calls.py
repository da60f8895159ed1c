"""The storage calls for signals and the jobs that wait for them: each runs the file of sql/queries
that has its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import cast

from hybrid_runner.model.messages import Channel, SignalSent, signals_channel
from hybrid_runner.model.signals import CallbackAnswer, Forgotten, Given, NotGiven, Swept
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.waiting.callback_tokens import Callback


async def find_channel(on: Fetches) -> Channel[SignalSent]:
    """Where workers hear of signals."""
    return signals_channel(await fetch_value(on, "signals_channel"))


async def send_signal(on: Fetches, key: str, payload: str) -> int:
    """Store a signal; its id."""
    sent: int = await fetch_value(on, "send_signal", key, payload)
    return sent


async def answer_callback(on: Fetches, callback: Callback, payload: str) -> CallbackAnswer:
    """Store the signal that a callback sends; what became of it."""
    return cast(
        "CallbackAnswer",
        await fetch_value(on, "answer_callback", callback.job_id, callback.key, payload),
    )


async def callback_secret(on: Fetches) -> bytes:
    """The secret with which tokens of callbacks are made."""
    secret: bytes = await fetch_value(on, "callback_secret")
    return secret


async def take_signals(
    on: Fetches, claims: Sequence[tuple[int, int]]
) -> dict[int, Given | NotGiven]:
    """What these jobs, as ids and claims, were woken for. Those whose claims are stale are left
    out.
    """
    ids, numbers = [job_id for job_id, _ in claims], [claim for _, claim in claims]
    rows = await fetch(on, "take_signals", ids, numbers)
    return {
        row["id"]: NotGiven.LOCKED if row["is_locked"] else Given(row["signal_id"], row["payload"])
        for row in rows
    }


async def take_signal(
    on: Fetches, job_id: int, claim: int, key: str, call: int
) -> Given | NotGiven:
    """What this call of `Job.signal` is given."""
    rows = await fetch(on, "take_signal", job_id, claim, key, call)
    if not rows:
        return NotGiven.STALE
    if rows[0]["is_locked"]:
        return NotGiven.LOCKED
    if not rows[0]["is_given"]:
        return NotGiven.NOT_YET
    return Given(rows[0]["signal_id"], rows[0]["payload"])


async def number_signals(on: Fetches, most: int) -> int:
    """Write down for which jobs so many committed signals are; how many had no number."""
    return len(await fetch(on, "number_signals", most))


async def wake_waiting(on: Fetches, ids: Sequence[int]) -> set[int]:
    """Make those of these jobs due whose signal is there; their ids."""
    return {row[0] for row in await fetch(on, "wake_waiting", ids)}


async def wake_by_keys(on: Fetches, keys: Sequence[str], most: int) -> int:
    """Make jobs due that wait for these keys and whose signal is there; how many."""
    return len(await fetch(on, "wake_by_keys", keys, most))


async def sweep_waiting(on: Fetches, after_key: str, after_id: int, most: int) -> Swept | None:
    """Look at so many waiting jobs behind this place; None when there is none."""
    rows = await fetch(on, "sweep_waiting", after_key, after_id, most)
    return Swept(*rows[0]) if rows else None


async def recent_keys(on: Fetches, within: timedelta, most: int) -> list[str]:
    """Keys of signals that were sent lately."""
    return [row[0] for row in await fetch(on, "recent_keys", within, most)]


async def forget_signals(on: Fetches, keep: timedelta, most: int) -> Forgotten:
    """Delete signals that are older."""
    return Forgotten(*(await fetch(on, "forget_signals", keep, most))[0])


async def forget_waits(on: Fetches, keep: timedelta, most: int) -> int:
    """Delete what jobs were given longer ago and nobody can ask for again; how many rows."""
    count: int = await fetch_value(on, "forget_waits", keep, most)
    return count
