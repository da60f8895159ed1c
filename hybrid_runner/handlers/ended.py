"""What the job is given that runs when another one has ended (`on_end`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from hybrid_runner.handlers.json_type import explain
from hybrid_runner.model.jobs import State

P = TypeVar("P")
D = TypeVar("D")


class _Unreadable(NamedTuple):
    """Stands in for a payload that is not there or does not fit."""

    why: str


def _fits_or_why_not(value: Any, fit: ValidatorFunctionWrapHandler) -> Any:
    try:
        return fit(value)
    except ValidationError as error:  # how the job ended is told all the same
        return _Unreadable(explain(error, ""))


def _fits_or_none(value: Any, fit: ValidatorFunctionWrapHandler) -> Any:
    try:
        return fit(value)
    except ValidationError:
        return None


class Ended(BaseModel, Generic[P, D]):
    """How a job ended. `P` is the type of its payload, `D` that of its memory."""

    model_config = ConfigDict(frozen=True)

    id: int
    kind: str
    key: str | None = None
    state: State
    reason: str | None = None
    """Why it failed or was cancelled."""
    payload: Annotated[P, WrapValidator(_fits_or_why_not)]
    """ValueError if the payload was left out, or does not fit its type."""
    data: Annotated[D | None, WrapValidator(_fits_or_none)] = None
    """The job's memory; None if it had none, or none that fits its type."""
    result: Any = None
    errors: list[Any] = []
    left_out: list[str] = []
    """Which of the four above are missing because all would have been too large."""

    if not TYPE_CHECKING:  # type checkers would take any name for a field

        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if name == "payload":
                if "payload" in self.left_out:
                    value = _Unreadable("was left out, since all together was too large")
                if type(value) is _Unreadable:
                    raise ValueError(f"the payload of job {self.id} ({self.kind}): {value.why}")
            return value
