"""The values as parts of a job's memory (B3): written, read, copied, refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from hybrid_runner import ConfigurationError
from hybrid_runner.handlers.counted_fields import counted_fields
from hybrid_runner.handlers.json_type import JsonType, explain
from hybrid_runner.waiting.backoff import Backoff
from hybrid_runner.waiting.confirmations import Confirmations
from hybrid_runner.waiting.fields import fields_of
from hybrid_runner.waiting.gate import Gate
from hybrid_runner.waiting.tries import Tries
from tests.support.looks import MovedLook


class Poll(BaseModel):
    task: str = "t"
    idle: Confirmations = Confirmations(times=2, apart="15s")
    rows: Tries = Tries(most=6, pace=Backoff("1.5s", cap="8s"))
    probe: Gate = Gate(after="5s", every="15s")
    stuck: Gate = Gate(after="3m")


MEMORY = JsonType(TypeAdapter(Poll))


def test_used_values_read_back_as_they_were_and_go_on_from_there() -> None:
    """B3"""
    job, poll = MovedLook(), Poll()
    poll.idle.confirm(job.at(6.123456))
    poll.probe.opens(job)
    poll.rows.again(job)
    written = MEMORY.write(poll, "the data")
    assert written.changed is None
    read = MEMORY.read(written.text)
    assert read == poll
    assert not read.probe.opens(job.at(21))
    assert read.probe.opens(job.at(21.2))
    assert read.idle.confirm(job)
    assert read.rows.used == 1


def test_they_are_stored_as_plain_numbers_that_sql_can_read() -> None:
    """B3"""
    poll = Poll()
    poll.probe.opens(MovedLook().at(6))
    assert orjson.loads(MEMORY.write(poll, "the data").text) == {
        "task": "t",
        "idle": {"times": 2, "apart": 15.0, "seen": 0, "last": None},
        "rows": {
            "most": 6,
            "pace": {"base": 1.5, "cap": 8.0, "factor": 2.0, "jitter": 0.2},
            "used": 0,
        },
        "probe": {
            "after": 5.0,
            "every": 15.0,
            "most": None,
            "opened": 1,
            "last": "2030-01-01T00:00:06Z",
        },
        "stuck": {"after": 180.0, "every": None, "most": None, "opened": 0, "last": None},
    }


def test_defaults_of_a_model_are_not_shared_between_jobs() -> None:
    """B3"""
    first, second = Poll(), MEMORY.read('{"task": "u"}')
    first.idle.confirm(MovedLook())
    assert (second.idle.seen, Poll().idle.seen) == (0, 0)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"idle": {"times": 0, "apart": 15}}, "idle.times: "),
        ({"idle": {"times": 2, "apart": "soon"}}, "idle.apart: Input should be a valid duration"),
        ({"idle": {"times": 2, "apart": 15, "last": "2030-01-01T00:00:00"}}, "idle.last: "),
        ({"idle": {"times": 2, "apart": 15, "seen": -1}}, "idle.seen: "),
        ({"idle": {"seen": 1}}, "idle.times: Field required; idle.apart: Field required"),
        ({"rows": {"most": 6, "pace": {"base": 9, "cap": 1}}}, "rows.pace: "),
        ({"rows": {"most": 6, "pace": {"base": 1, "cap": 8, "factor": "x"}}}, "rows.pace: "),
        ({"rows": {"most": 6, "pace": {"base": 1, "cap": 8, "factor": 1e300}}}, "rows.pace: "),
        ({"rows": {"most": 6, "pace": {"base": 1, "cap": 8, "jitter": 7}}}, "rows.pace: "),
        ({"rows": {"most": 6, "pace": {"base": 1}}}, "rows.pace: Value error, cap is missing"),
        ({"rows": {"most": 6, "pace": 3}}, "rows.pace: Value error, it must be an object"),
        ({"probe": {"after": -5}}, "probe.after: "),
        ({"probe": {"after": 1e12}}, "probe.after: "),
        ({"probe": {"after": True}}, "probe.after: "),
        ({"probe": 7}, "probe: "),
    ],
)
def test_stored_numbers_that_cannot_be_are_refused_by_their_field(
    stored: dict[str, Any], said: str
) -> None:
    """B3: whoever may insert may write any data."""
    with pytest.raises(ValidationError) as refused:
        MEMORY.read(orjson.dumps(stored))
    assert explain(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Confirmations(times=0), "Confirmations: times must be 1 to 1,000,000, not 0"),
        (lambda: Confirmations(apart="soon"), "Confirmations: apart: 'soon' is not a duration"),
        (lambda: Tries(most=True), "Tries: most must be 1 to 1,000,000, not True"),
        (lambda: Tries(pace="2s"), "Tries: pace must be a Backoff, not '2s'"),  # type: ignore[arg-type]
        (lambda: Gate(after=-1), "Gate: after: duration -1 is out of range"),
        (lambda: Gate(every="x"), "Gate: every: 'x' is not a duration"),
        (lambda: Gate(most=0), "Gate: most must be 1 to 1,000,000, not 0"),
    ],
)
def test_arguments_that_cannot_be_are_refused_in_one_line(
    make: Callable[[], object], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make()
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


class Step(BaseModel):
    gate: Gate = Gate()


@dataclass
class Nested:
    step: Step = field(default_factory=Step)
    steps: tuple[Step, ...] = ()
    hosts: dict[str, Gate] = field(default_factory=dict)
    tries: list[Tries] = field(default_factory=list)
    note: Any = None


def test_a_value_is_named_by_the_fields_that_hold_it() -> None:
    """B14: by names of the code alone, whatever keys a memory has."""
    hosts = {"a.example": Gate(), "b.example": Gate()}
    nested = Nested(steps=(Step(), Step()), hosts=hosts, tries=[Tries(), Tries()])
    inside = (nested.step.gate, nested.steps[1].gate, hosts["b.example"], nested.tries[1])
    names = ["step.gate", "steps.gate", "hosts", "tries"]
    found = fields_of(nested)
    assert [found[id(value)] for value in inside] == names
    assert list(dict.fromkeys(path for _, path in counted_fields(TypeAdapter(Nested)))) == names


class Chain(BaseModel):
    cls: Gate = Gate()
    inner: Chain | None = None


def test_the_fields_that_are_counted_are_known_before_there_is_a_job() -> None:
    """B14: so that their series begin at 0; a type that holds itself has an end."""
    assert counted_fields(TypeAdapter(Poll)) == [
        ("seen", "idle"),
        ("confirmed", "idle"),
        ("again", "rows"),
        ("used_up", "rows"),
        ("opened", "probe"),
        ("opened", "stuck"),
    ]
    assert counted_fields(TypeAdapter(Chain)) == [("opened", "cls")]
    assert counted_fields(TypeAdapter(dict)) == []


def test_a_value_that_is_not_in_the_memory_has_no_name() -> None:
    """B14"""
    gate = Gate()
    assert [
        id(gate) in fields_of(memory) for memory in (Nested(), {"gate": gate}, [gate], None)
    ] == ([False] * 4)


def test_a_memory_that_holds_itself_and_one_that_holds_very_much_have_an_end() -> None:
    nested = Nested(hosts={str(number): Gate() for number in range(20_000)})
    nested.note = nested
    assert 9_000 < len(fields_of(nested)) <= 10_000
