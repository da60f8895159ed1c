"""The names of the fields of a job's memory that hold values: what metrics call these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from hybrid_runner.waiting.confirmations import Confirmations
from hybrid_runner.waiting.gate import Gate
from hybrid_runner.waiting.tries import Tries

VALUES = (Confirmations, Tries, Gate)
_MOST = 10_000
"""Parts of a memory that are looked at."""
_known = WeakKeyDictionary[type, tuple[str, ...]]()


def fields_of(memory: object) -> dict[int, str]:
    """The name for each value, by its `id`: `probe`, or `step.probe` in a model within; values in a
    list or mapping have its name. Made of names of fields alone, so that there are no more than
    the code has.
    """
    models, found, walked = [("", memory)], dict[int, str](), {id(memory)}
    for above, model in models:  # which grows
        for name in _names(model):
            path = f"{above}.{name}" if above else name
            for part in _parts(getattr(model, name, None)):
                if len(found) + len(walked) > _MOST:
                    return found
                if isinstance(part, VALUES):
                    found.setdefault(id(part), path)
                elif _names(part) and id(part) not in walked:
                    walked.add(id(part))
                    models.append((path, part))
    return found


def _names(model: object) -> tuple[str, ...]:
    """Of the fields of a model or dataclass."""
    cls = type(model)
    if (names := _known.get(cls)) is None:
        if issubclass(cls, BaseModel):
            names = tuple(cls.model_fields)
        else:
            names = tuple(each.name for each in fields(cls)) if is_dataclass(cls) else ()
        _known[cls] = names
    return names


def _parts(held: object) -> Sequence[object]:
    """What a field holds: itself, or what is in it."""
    if isinstance(held, (list, tuple)):
        return held[:_MOST]
    return list(islice(held.values(), _MOST)) if isinstance(held, Mapping) else (held,)
