"""Rows of attached tables: no want is lost, every late row is written, nobody waits for each other.

Every interleaving, with the decision that production makes, read from Postgres as a table.
"""

from __future__ import annotations

from itertools import product

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.model.sources.explorer import RUNS, Explored, Explorer
from tests.model.sources.worlds import Budget, Decide, Rules

STATES = ("running", "queued", "snoozed", "completed", "cancelled", "retried", "beat")
WORDS = ("queued", "running", "ended", "other")
Question = tuple[str, str, bool, bool, bool]
ARM = frozenset({"arm"})


@pytest.fixture
async def verdicts(unchanged: Connection) -> dict[Question, str]:
    flags = (False, True)
    questions = list(product(STATES, WORDS, flags, flags, flags))
    answers = await unchanged.fetch(
        "SELECT hybrid_runner.row_verdict(q.state, q.shows, q.wanted, q.queued, q.untouched)"
        " FROM unnest($1::text[], $2::text[], $3::bool[], $4::bool[], $5::bool[]) WITH ORDINALITY"
        " AS q (state, shows, wanted, queued, untouched, place) ORDER BY q.place",
        *map(list, zip(*questions, strict=True)),
    )
    return {question: answer[0] for question, answer in zip(questions, answers, strict=True)}


@pytest.fixture
def decide(verdicts: dict[Question, str]) -> Decide:
    return deciding(verdicts)


def deciding(verdicts: dict[Question, str]) -> Decide:
    return lambda *question: verdicts[question]


def fine(explored: Explored) -> bool:
    assert not explored.fault, "\n".join([explored.fault, *explored.story])
    return True


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(Budget(3), id="an application changes the row three times"),
        pytest.param(Budget(2, crashes=1), id="a worker dies, or seems to"),
        pytest.param(Budget(2, put_backs=1), id="the job is put back, or snoozes"),
        pytest.param(Budget(2, beats=1), id="the row shows that the job still runs"),
        pytest.param(Budget(2, cancels=1), id="somebody cancels the job"),
        pytest.param(Budget(2, put_backs=1, retries=1), id="somebody runs the ended job again"),
        pytest.param(Budget(2, swallows=2), id="a trigger drops two writes"),
        pytest.param(Budget(2, swallows=1, put_backs=1), id="and the job is put back"),
    ],
)
def test_no_want_is_lost_and_every_row_shows_its_last_job(decide: Decide, budget: Budget) -> None:
    explored = Explorer(decide, budget=budget).explore()
    assert fine(explored)
    assert explored.worlds > 1_000


def test_nor_when_two_applications_change_the_row(decide: Decide) -> None:
    assert fine(Explorer(decide, budget=Budget(2), applications=2).explore())


def test_who_changes_two_rows_and_who_ends_their_jobs_never_wait_for_each_other(
    decide: Decide,
) -> None:
    """The circle of a naive mirror, which waits for rows."""
    assert fine(Explorer(decide, (RUNS, RUNS), Budget(2), edits=ARM).explore())


# --- each rule is there for a fault that is seen without it

LOST = "a row is wanted and has no job"
UNREAD = "an end is written over what no handler has read"
UNWANTED = "a row is cancelled that its application wants"
TWICE = "a row is worked on again for nothing"
CIRCLE = "transactions wait for each other"


@pytest.mark.parametrize(
    ("rules", "budget", "fault"),
    [
        (Rules(skip_locked=False), Budget(2), CIRCLE),
        (Rules(late_rows=False), Budget(2), TWICE),
        (Rules(one_transaction=False), Budget(1, crashes=1), "left running"),
        (Rules(check_under_lock=False), Budget(3), TWICE),
        (Rules(later_only_untouched=False), Budget(2), UNREAD),
        (Rules(hold_late_row=False), Budget(2, retries=1), "its job waits"),
        (Rules(state_of_then=False), Budget(3), TWICE),
        (Rules(fence_by_claim=False), Budget(1, crashes=1), "shows running"),
        (Rules(read_when_shown=False), Budget(2), UNREAD),
        (Rules(look_at_changed_rows=False), Budget(3), UNWANTED),
        (Rules(lock_before_looking=False), Budget(3), UNWANTED),
        (Rules(tell_only_the_shown=False), Budget(3), UNWANTED),
        (Rules(changed_is_not_queued=False), Budget(3), UNREAD),
        (Rules(compare_what_was_queued=False), Budget(2, cancels=1), UNREAD),
        (Rules(look_at_what_was_written=False), Budget(1, swallows=1), "left running"),
        (Rules(see_what_was_refused=False), Budget(1, swallows=1), TWICE),
        (Rules(beats_leave_late_rows=False), Budget(2, beats=1), TWICE),
        (Rules(note_conflicts=False), Budget(3), LOST),
        (Rules(retry_locks_late_row=False), Budget(2, retries=1), "does not run again"),
    ],
    ids=lambda value: (
        next(name for name, kept in value._asdict().items() if not kept)
        if isinstance(value, Rules)
        else ""
    ),
)
def test_without_its_rule_a_row_goes_wrong(
    decide: Decide, rules: Rules, budget: Budget, fault: str
) -> None:
    explored = Explorer(decide, budget=budget, rules=rules).explore()
    assert explored.fault
    assert fault in explored.fault


def test_a_trigger_that_changed_jobs_would_wait_for_those_who_end_them(decide: Decide) -> None:
    explorer = Explorer(
        decide,
        (RUNS, RUNS),
        Budget(2),
        Rules(triggers_only_insert=False),
        edits=frozenset({"arm", "stop"}),
    )
    assert explorer.explore().fault == CIRCLE


def test_nobody_would_wait_for_ever_if_nobody_gave_up(decide: Decide) -> None:
    """The lock_timeout of source_N_write is for what the table's own triggers wait for."""
    rules = Rules(give_up_soon=False)
    assert fine(Explorer(decide, budget=Budget(2, retries=1), rules=rules).explore())


# --- so is each answer of row_verdict


ENDED = "an end that the application wrote is written over"
OTHER = "a word of the application is written over"
RUNNING = "a row was left running"
WAITS = "a row shows running and its job waits"
RETRIED = "a job does not run again that somebody retried"
NOT_WANTED = "a row is worked on that is not wanted"
BACK = Budget(2, put_backs=1, cancels=1)
AGAIN = Budget(2, put_backs=1, retries=1)


@pytest.mark.parametrize(
    ("state", "shows", "wanted", "queued", "untouched", "instead", "budget", "fault"),
    [
        ("running", "other", False, False, False, "write", Budget(2), NOT_WANTED),
        ("running", "queued", False, False, False, "write", Budget(2), NOT_WANTED),
        ("running", "queued", True, False, True, "unwanted", Budget(2), TWICE),
        ("running", "ended", False, False, False, "write", BACK, ENDED),
        ("running", "ended", False, False, True, "unwanted", AGAIN, RETRIED),
        ("completed", "running", False, False, False, "keep", Budget(2), RUNNING),
        ("completed", "running", False, False, False, "again", Budget(2), TWICE),
        ("completed", "queued", True, False, False, "write", Budget(2), UNREAD),
        ("completed", "queued", True, False, False, "keep", Budget(2), LOST),
        ("completed", "queued", True, False, True, "keep", Budget(2), LOST),
        ("completed", "queued", True, False, True, "again", Budget(2), TWICE),
        ("completed", "queued", False, False, False, "again", Budget(2), TWICE),
        ("completed", "ended", False, False, False, "write", Budget(2), ENDED),
        ("completed", "other", False, False, False, "write", Budget(2), OTHER),
        ("cancelled", "running", False, False, False, "keep", BACK, RUNNING),
        ("cancelled", "queued", True, False, False, "write", BACK, UNREAD),
        ("cancelled", "queued", True, False, False, "keep", BACK, LOST),
        ("cancelled", "queued", True, True, False, "keep", BACK, LOST),
        ("cancelled", "other", False, False, False, "write", Budget(2), OTHER),
        ("queued", "running", False, False, False, "keep", BACK, WAITS),
        ("queued", "ended", False, False, False, "write", BACK, ENDED),
        ("queued", "ended", False, False, True, "keep", AGAIN, RETRIED),
        ("queued", "other", False, False, False, "write", BACK, OTHER),
        ("snoozed", "ended", False, False, True, "keep", AGAIN, RETRIED),
        ("snoozed", "other", False, False, False, "write", BACK, OTHER),
        ("retried", "ended", False, False, False, "keep", AGAIN, RETRIED),
        ("retried", "other", False, False, False, "write", AGAIN, OTHER),
        ("retried", "running", False, False, False, "keep", AGAIN, WAITS),
        ("beat", "ended", False, False, False, "write", Budget(2, beats=1), ENDED),
    ],
)
def test_another_answer_makes_a_row_go_wrong(
    verdicts: dict[Question, str],
    state: str,
    shows: str,
    wanted: bool,
    queued: bool,
    untouched: bool,
    instead: str,
    budget: Budget,
    fault: str,
) -> None:
    question = (state, shows, wanted, queued, untouched)
    assert verdicts[question] != instead
    explored = Explorer(deciding({**verdicts, question: instead}), budget=budget).explore()
    assert explored.fault == fault
