"""A strict reader of Prometheus text 0.0.4: what a scraper would refuse, or would silently misread,
is an AssertionError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = frozenset[tuple[str, str]]


@dataclass
class Family:
    """One instrument as a scraper sees it."""

    kind: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def of(self, **labels: str) -> float:
        """The sum of all series with these labels; of a histogram, how many values it has seen."""
        wanted = set(labels.items())
        ours = "_count" if self.kind == "histogram" else ""
        return sum(
            value
            for (suffix, given), value in self.samples.items()
            if suffix == ours and wanted <= given
        )


def parsed(text: str) -> dict[str, Family]:
    """All families by name."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    helps: dict[str, str] = {}
    current = ""
    for line in text[:-1].split("\n"):
        if match := re.fullmatch(rf"# HELP ({_NAME}) (.+)", line):
            assert match[1] not in helps, line
            helps[match[1]] = match[2]
        elif match := re.fullmatch(rf"# TYPE ({_NAME}) (counter|gauge|histogram)", line):
            current = match[1]
            assert current not in families, line
            families[current] = Family(match[2], helps[current])
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            suffix = match[1].removeprefix(current)
            family = families[current]
            assert match[1].startswith(current), line
            assert suffix in (
                {"_bucket", "_sum", "_count"} if family.kind == "histogram" else {""}
            ), line
            key = (suffix, _labels(match[2] or ""))
            assert key not in family.samples, line
            family.samples[key] = _number(match[3])
    for family in families.values():
        _check(family)
    assert families.keys() == helps.keys()
    return families


def _labels(text: str) -> Labels:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LABEL.match(text, place)
        assert match, text
        assert match[1] not in found, text
        found[match[1]] = re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], match[2])
        place = match.end()
        assert bool(match[3]) == (place < len(text)), text
    return frozenset(found.items())


def _number(text: str) -> float:
    return (
        {"+Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}[text]
        if text[-1] in "fN"
        else float(text)
    )


def _check(family: Family) -> None:
    for value in family.samples.values():
        assert family.kind == "gauge" or value >= 0
    if family.kind == "histogram":
        series: dict[Labels, dict[float, float]] = {}
        for (suffix, labels), value in family.samples.items():
            if suffix == "_bucket":
                [bound] = [text for name, text in labels if name == "le"]
                series.setdefault(labels - {("le", bound)}, {})[_number(bound)] = value
        for labels, buckets in series.items():
            assert list(buckets) == sorted(buckets)
            assert list(buckets.values()) == sorted(buckets.values())
            assert list(buckets)[-1] == math.inf
            assert buckets[math.inf] == family.samples["_count", labels]
            assert ("_sum", labels) in family.samples
        assert len(series) * 2 == sum(suffix != "_bucket" for suffix, _ in family.samples)


async def page_of(port: int) -> str:
    """The text of /metrics."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as response,
    ):
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return await response.text()


async def scrape(port: int) -> Mapping[str, Family]:
    """The families of /metrics, without our prefix."""
    return {
        name.removeprefix("hybrid_runner_"): family
        for name, family in parsed(await page_of(port)).items()
    }
