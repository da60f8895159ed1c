"""The figures and tables of docs/how-it-works.md are those of the code."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from hybrid_runner.policy import look_rate, reach, ring_order
from hybrid_runner.policy.doorbell import Mode
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.tracing import span_queue
from hybrid_runner.web.stream import changes, job_stream, new_jobs
from hybrid_runner.worker.queue import queue_station
from hybrid_runner.worker.report import change_feed
from tests.docs.blocks import ROOT, blocks

PAGE = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
PROSE = re.sub(r"\s+", " ", PAGE)
DEFAULTS = Settings()
MODES = {"falling asleep": Mode.FALLING} | {
    mode.value: mode for mode in Mode if mode is not Mode.FALLING
}


def ms(duration: timedelta | float) -> str:
    """A short time as the page writes it."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return f"{seconds * 1000:g} ms"


def s(duration: timedelta | float) -> str:
    """A longer one."""
    return f"{duration.total_seconds() if isinstance(duration, timedelta) else duration:g} s"


@pytest.mark.parametrize(
    "said",
    [
        f"(every {s(DEFAULTS.work.heartbeat)})",
        f"every {s(DEFAULTS.polling.hybrid_poll_base)} to {s(DEFAULTS.polling.hybrid_poll_cap)} while rings arrive",
        f"every {s(DEFAULTS.polling.poll_base)} to {s(DEFAULTS.polling.poll_cap)} while they do not",
        f"due within {s(DEFAULTS.polling.hybrid_poll_cap)}, the ring says `later`",
        f"muted for {ms(DEFAULTS.tuning.mute_lease)}, again every {ms(DEFAULTS.tuning.mute_renewal)}",
        f"at least {DEFAULTS.tuning.doorbell_rate:g} jobs a second",
        f"After {ms(DEFAULTS.tuning.full_help_after)} it asks whether",
        f"come back full for {ms(DEFAULTS.tuning.saturated_help_after)}",
        f"up to {ring_order.EVERYBODY} workers everybody looks",
        f"a third one {ms(queue_station._LOOK_LATER)} later",
        f"never past {ms(DEFAULTS.tuning.frontier_margin)} before that look",
        f"to {s(reach.FURTHEST)} before that look, as long as at most {reach.FEW:,} jobs",
        f"after {s(look_rate.FIRST_BLOCK)} at the latest",
        f"and so on to {s(look_rate.LONGEST_BLOCK)}",
        f"An awake worker sweeps every {ms(DEFAULTS.tuning.sweep_every)}.",
        f"no sooner than {DEFAULTS.tuning.sweep_cost_factor:g} times what the last one took",
        f"every {s(DEFAULTS.work.heartbeat)} or three times in a lease ({s(DEFAULTS.work.lease)})",
        f"for {s(changes.LEASE)} (renewed every {s(changes.RENEWAL)})",
        f"every {ms(change_feed.PAUSE)} sends one message",
        f"at most {change_feed.MOST_IDS} ids",
        f"asks every {ms(job_stream.POLL)} for new ids",
        f"asked for every {s(job_stream.RECHECK)} anyway",
        f"At most {new_jobs.MOST_WAITING:,} new jobs a second",
        f"at most {span_queue.SHARE:.0%} of a core".replace("%", " %"),
    ],
)
def test_a_figure_of_the_page_is_that_of_the_code(said: str) -> None:
    assert said in PROSE


def test_the_pauses_of_falling_asleep_grow_to_a_second() -> None:
    assert DEFAULTS.tuning.falling_pause_max == timedelta(seconds=1)
    assert "grow to a second" in PROSE


def test_every_mode_has_its_row() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| .+ \| .+ \|$", PAGE, re.MULTILINE)
    assert {MODES[row] for row in rows if row in MODES} == set(Mode)


async def test_every_duty_has_its_row(monitored: Connection) -> None:
    database = monitored
    rows = re.findall(r"^\| `(\w+)` \| (\d+ \w+) \|", PAGE, re.MULTILINE)
    await database.execute(
        "INSERT INTO hybrid_runner.sources"
        " (relation, relation_name, kind, queue, owner, definition)"
        " VALUES ('pg_class', 'a', 'b', 'c', 'd', '{}')"
    )
    await database.execute(
        "INSERT INTO hybrid_runner.schedules (name, kind, every) VALUES ('a', 'b', '1 day')"
    )
    there = await database.fetch("SELECT name, every FROM hybrid_runner.duties")
    units = {"seconds": 1, "minute": 60, "minutes": 60, "hour": 3600}
    assert {name: int(pause.split()[0]) * units[pause.split()[1]] for name, pause in rows} == {
        row["name"]: row["every"].total_seconds() for row in there
    }


def test_every_chapter_but_the_first_has_a_picture_and_names_its_decision() -> None:
    chapters = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert len(chapters) == len(re.findall(r"^\d\. \[", PAGE, re.MULTILINE))
    assert all("```mermaid" in text for _, text in chapters)
    assert all("](decisions/" in text for _, text in chapters[1:])


def test_a_picture_is_one_that_the_renderer_knows() -> None:
    kinds = {block.text.split()[0] for block in blocks("docs/how-it-works.md", "mermaid")}
    assert kinds <= {"sequenceDiagram", "flowchart", "stateDiagram-v2"}
