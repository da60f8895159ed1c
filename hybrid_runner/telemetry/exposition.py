"""Figures as Prometheus reads them: its text format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import accumulate

from hybrid_runner.telemetry.figures import Figures, Labels, Spread, Value
from hybrid_runner.telemetry.instruments import INSTRUMENTS, Instrument

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def as_text(figures: Figures) -> str:
    """Every instrument of the table, whether it has a series yet or not."""
    lines: list[str] = []
    for instrument in INSTRUMENTS:
        lines.append(f"# HELP {instrument.name} {instrument.help.translate(_IN_HELP)}")
        lines.append(f"# TYPE {instrument.name} {instrument.kind.value}")
        lines += _series(instrument, figures.get(instrument.name, {}))
    lines.append("")
    return "\n".join(lines)


def _series(instrument: Instrument, series: Mapping[Labels, Value]) -> Iterator[str]:
    name = instrument.name
    bounds = [f'le="{bound:g}"}} ' for bound in instrument.bounds] + ['le="+Inf"} ']
    for labels, value in series.items():
        inside = ",".join(f'{label}="{text.translate(_IN_LABELS)}"' for label, text in zip(instrument.labels, labels, strict=True))
        braces = f"{{{inside}}}" if inside else ""
        if isinstance(value, Spread):
            head = f"{name}_bucket{{{inside}," if inside else f"{name}_bucket{{"
            below = list(accumulate(value.counts))
            for bound, count in zip(bounds, below, strict=True):
                yield f"{head}{bound}{count}"
            yield f"{name}_sum{braces} {_number(value.sum)}"
            yield f"{name}_count{braces} {below[-1]}"
        else:
            yield f"{name}{braces} {_number(value)}"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
