"""What fake services play. Each script is a function of the moment alone: of which service, and how
often it was asked before; so a test knows what was answered from the journal.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from examples.status_monitor.fake.answers import (
    Answer,
    Drip,
    Endless,
    Hang,
    Raw,
    Reply,
    reply,
)

LATE = 5.0
"""Seconds that a late answer takes."""
LINK_LOCAL = "http://169.254.169.254/latest/meta-data/"
TYPES = ("database", "cache", "queue", "rest", "smtp")


class Moment(NamedTuple):
    service: int
    """Its number, so that not all do the same at the same time."""
    visit: int
    """How many requests came before this one."""


Script: TypeAlias = Callable[[Moment], Answer]
Items: TypeAlias = list[dict[str, Any]]


def items(moment: Moment, *, healthy: bool = True, count: int = 5, **first: Any) -> Items:
    """The standard shape. The latency of each is the number of the visit, from 1: the history of
    latencies then says which visits were stored.
    """
    made = [
        {
            "name": f"{kind}-{number}" if number >= len(TYPES) else kind,
            "type": kind,
            "healthy": True,
            "health": {"state": 0, "code": 200, "latency": moment.visit + 1},
            "contact": {"team": f"team {moment.service % 7}"},
        }
        for number, kind in ((number, TYPES[number % len(TYPES)]) for number in range(count))
    ]
    if not healthy:
        made[0] |= {
            "healthy": False,
            "health": {"state": 2, "code": 500, "latency": moment.visit + 1},
            "error": {"reason": "no connection", "visit": moment.visit},
            "errorMessage": f"no connection at visit {moment.visit}",
        }
    made[0] |= first
    return made


def is_up(moment: Moment, phase: int = 4) -> bool:
    """Of a service that flaps: up for a while, down for a while."""
    return (moment.visit + moment.service) // phase % 2 == 0


# --- as they should be


def healthy(moment: Moment) -> Answer:
    return reply(items(moment))


def steady(moment: Moment) -> Answer:
    """Always the same bytes: what thousands of healthy services do."""
    return _steady(moment.service % 7)


@cache
def _steady(number: int) -> Reply:
    return reply(items(Moment(number, 11)))


def flapping(moment: Moment) -> Answer:
    return reply(items(moment, healthy=is_up(moment)))


def warning(moment: Moment) -> Answer:
    state = {"state": "WARNING", "code": 2, "latency": moment.visit + 1}
    return reply(items(moment, health=state, errorMessage="its disk is nearly full"))


def skipping(moment: Moment) -> Answer:
    """`skipped` wins over `healthy: false`."""
    return reply(items(moment, healthy=False, skipped=True))


def flat(moment: Moment) -> Answer:
    return reply(
        [
            {
                "name": kind,
                "type": kind,
                "healthy": is_up(moment) or kind != "cache",
                "healthCode": 200,
                "latencyMs": moment.visit + 1,
            }
            for kind in TYPES
        ]
    )


# --- as others answer


def spring(moment: Moment) -> Answer:
    """Spring Boot's actuator."""
    return reply(_components(moment), 200 if is_up(moment) else 503)


def spring_kind(moment: Moment) -> Answer:
    """The same, of somebody who answers 200 also when a part is down."""
    return reply(_components(moment))


def _components(moment: Moment) -> dict[str, Any]:
    up = is_up(moment)
    parts = {
        "db": {"status": "UP" if up else "DOWN", "details": {"database": "PostgreSQL"}},
        "diskSpace": {"status": "UP", "details": {"free": 10_000_000}},
        "ping": {"status": "UP"},
    }
    return {"status": "UP" if up else "DOWN", "components": parts}


def gatus(moment: Moment) -> Answer:
    """Gatus' list of endpoints."""
    return reply(
        {
            "endpoints": [
                {
                    "key": f"core_{kind}",
                    "name": kind,
                    "results": {"success": is_up(moment) or kind != "rest", "status": 200},
                    "duration": moment.visit + 1,
                }
                for kind in TYPES
            ]
        }
    )


def changing(moment: Moment) -> Answer:
    """Now and then items of another shape are among them: a mapping that no longer fits."""
    if is_up(moment):
        return gatus(moment)
    return reply({"endpoints": [{"name": "rest", "results": {"success": "perhaps"}}, 7, None]})


# --- as they should not be


def lying(moment: Moment) -> Answer:
    """Healthy, it says, and beside it that it is not."""
    health = {"state": 2, "code": 500, "latency": moment.visit + 1}
    return reply(items(moment, health=health, error="it burns"))


def failing(_: Moment) -> Answer:
    return reply({"message": "it burns"}, 500)


def recovering(moment: Moment) -> Answer:
    """Fails some times in a row, then answers well as often."""
    return healthy(moment) if is_up(moment, 6) else failing(moment)


def hanging(_: Moment) -> Answer:
    return Hang()


def hanging_at_times(moment: Moment) -> Answer:
    return healthy(moment) if is_up(moment, 3) else Hang()


def late(moment: Moment) -> Answer:
    return reply(items(moment), after=LATE)


def slow(moment: Moment) -> Answer:
    """A little."""
    return reply(items(moment), after=0.05 + (moment.service + moment.visit) % 10 / 50)


def dripping(moment: Moment) -> Answer:
    return Drip(reply(items(moment)), 0.2)


def endless(_: Moment) -> Answer:
    return Endless()


def bomb(_: Moment) -> Answer:
    return _bomb()


@cache
def _bomb() -> Reply:
    """A hundred million blanks in a hundred thousand bytes: the same million again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"[") + packer.flush(zlib.Z_FULL_FLUSH)
    million = packer.compress(b" " * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    return Reply(head + million * 100 + packer.flush(), headers=headers)


def large(_: Moment) -> Answer:
    return Reply(b'["' + b"x" * 3_000_000 + b'"]')


def nan(moment: Moment) -> Answer:
    return reply(items(moment, checkDetails={"ratio": float("nan"), "most": float("inf")}))


def nul(moment: Moment) -> Answer:
    return reply(items(moment, description="a\0b", error={"a\0": "\0"}, errorMessage="\0"))


def surrogates(moment: Moment) -> Answer:
    return reply(items(moment, description="\ud800", name="half \udfff"))


def deep(_: Moment) -> Answer:
    return Reply(b"[" * 2_000 + b"]" * 2_000)


def huge_numbers(moment: Moment) -> Answer:
    health = {"state": 10**30, "code": -(10**20), "latency": 1e308}
    return reply(items(moment, health=health))


def wrong_types(moment: Moment) -> Answer:
    return reply([*items(moment), {"name": 7, "healthy": "perhaps", "type": []}])


def twice(moment: Moment) -> Answer:
    """Two items of one name."""
    return reply(items(moment) + items(moment, healthy=False, count=1))


def crowd(moment: Moment) -> Answer:
    return reply(items(moment, count=5_000))


def no_json(_: Moment) -> Answer:
    page = b"<html><body>It works!</body></html>"
    return Reply(page, headers=(("Content-Type", "text/html"),))


def no_text(_: Moment) -> Answer:
    return Reply(b"\xff\xfe\x00[1]")


def empty(_: Moment) -> Answer:
    return Reply()


def redirecting(_: Moment) -> Answer:
    return Reply(status=302, headers=(("Location", "../target/dependencies"),))


def round_and_round(_: Moment) -> Answer:
    return Reply(status=302, headers=(("Location", "?again"),))


def to_link_local(_: Moment) -> Answer:
    return Reply(status=302, headers=(("Location", LINK_LOCAL),))


def closing(_: Moment) -> Answer:
    return Raw()


def half(moment: Moment) -> Answer:
    """Fewer bytes than it promised."""
    body = json.dumps(items(moment)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return Raw(head + body[: len(body) // 2])


def no_http(_: Moment) -> Answer:
    return Raw(b"220 mail.example ESMTP\r\n")


SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for script in (
        healthy,
        steady,
        flapping,
        warning,
        skipping,
        flat,
        spring,
        spring_kind,
        gatus,
        changing,
        lying,
        failing,
        recovering,
        hanging,
        hanging_at_times,
        late,
        slow,
        dripping,
        endless,
        bomb,
        large,
        nan,
        nul,
        surrogates,
        deep,
        huge_numbers,
        wrong_types,
        twice,
        crowd,
        no_json,
        no_text,
        empty,
        redirecting,
        round_and_round,
        to_link_local,
        closing,
        half,
        no_http,
    )
}
"""By name, as a process of its own is told which to play."""
