"""The public status page as HTML. Pure: services in, text out. Whatever comes from outside is
escaped here and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Final, Literal, TypeAlias

from hybrid_runner.display import harmless
from hybrid_runner.model.monitor_views import PublicDependency, PublicService

STYLE: Final = (Path(__file__).parent / "status.css").read_text(encoding="utf-8")
MOST_DEPENDENCIES: Final = 40
"""Shown of each service, the unhealthy ones first."""
Tone: TypeAlias = Literal["down", "degraded", "maintenance", "unknown", "up"]
_HEADINGS: Final[dict[Tone, str]] = {
    "down": "Down",
    "degraded": "Degraded",
    "maintenance": "In maintenance",
    "unknown": "Not heard of yet",
    "up": "Up",
}
"""In the order of the page."""
_WORDS: Final[dict[Tone, str]] = {
    "down": "Down",
    "degraded": "Degraded",
    "maintenance": "Maintenance",
    "unknown": "No answer yet",
    "up": "Up",
}


@dataclass(frozen=True, slots=True)
class StatusPage:
    """What is shown."""

    services: Sequence[PublicService]
    has_more: bool
    at: datetime


def html_of(page: StatusPage) -> str:
    """The whole page."""
    tone, headline, detail = verdict(page.services, has_more=page.has_more)
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            '<meta http-equiv="refresh" content="60">\n',
            f"<title>{escape(headline)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n",
            f'<header class="verdict {tone}"><span class="mark" aria-hidden="true"></span>',
            f"<div><h1>{escape(headline)}</h1><p>{escape(detail)}</p></div></header>\n",
            *_sections(page),
            "<footer>",
            "<p>Only the first are shown: there are more.</p>" if page.has_more else "",
            f"<p>As of {_moment(page.at)}. This page loads itself anew every minute.</p>",
            "</footer>\n</main>\n</body>\n</html>\n",
        )
    )


def tone_of(service: PublicService) -> Tone:
    """A service that answers is degraded while one of its dependencies is unhealthy."""
    match service.state:
        case "up":
            return "up" if all(each.healthy for each in service.dependencies) else "degraded"
        case "paused":
            return "unknown"
        case other:
            return other


def verdict(services: Sequence[PublicService], *, has_more: bool = False) -> tuple[str, str, str]:
    """The tone of the page, its headline, and a sentence below it."""
    counts = Counter(map(tone_of, services))
    total = len(services) + has_more
    if not total:
        return "calm", "Nothing is monitored", "No service is shown here."
    detail = _sentence(counts)
    if down := counts["down"]:
        if down == total:
            return "bad", "All services are down" if total > 1 else "The service is down", detail
        return "bad", f"{_services(down)} {_are(down)} down", detail
    if degraded := counts["degraded"]:
        return "warn", f"{_services(degraded)} {_are(degraded)} degraded", detail
    if number := counts["maintenance"]:
        return "calm", f"{_services(number)} {_are(number)} in maintenance", detail
    if counts["unknown"] == total:
        return "calm", "No service has been polled yet", detail
    if counts["unknown"]:
        return "good", "All polled services are up", detail
    return "good", "All services are up" if total > 1 else "The service is up", detail


def _sentence(counts: Counter[Tone]) -> str:
    words: dict[Tone, str] = {
        "up": "up",
        "degraded": "degraded",
        "down": "down",
        "maintenance": "in maintenance",
        "unknown": "not heard of yet",
    }
    return ", ".join(f"{counts[tone]:,} {word}" for tone, word in words.items() if counts[tone])


def _sections(page: StatusPage) -> Iterator[str]:
    for tone, heading in _HEADINGS.items():
        found = [service for service in page.services if tone_of(service) == tone]
        if not found:
            continue
        yield f'<section aria-labelledby="{tone}"><h2 id="{tone}">{escape(heading)}'
        yield f' <span class="count">{len(found):,}</span></h2>\n<ul class="services">\n'
        for service in found:
            yield from _service(service, tone, page.at)
        yield "</ul></section>\n"


def _service(service: PublicService, tone: Tone, now: datetime) -> Iterator[str]:
    """One line; with dependencies it can be opened, and is open where one is unhealthy."""
    yield f'<li class="service {tone}">'
    ordered = sorted(service.dependencies, key=lambda each: each.healthy)
    if not ordered:
        yield f'<div class="line">{_line(service, tone, now)}</div></li>\n'
        return
    is_open = "" if ordered[0].healthy else " open"
    yield f'<details{is_open}><summary class="line">{_line(service, tone, now)}</summary>'
    yield f'<ul class="dependencies" aria-label="Dependencies of {_text(service.name)}">'
    for one in ordered[:MOST_DEPENDENCIES]:
        yield _dependency(one)
    if (more := len(ordered) - MOST_DEPENDENCIES) > 0:
        yield f'<li class="more">and {more:,} more</li>'
    yield "</ul></details></li>\n"


def _line(service: PublicService, tone: Tone, now: datetime) -> str:
    number = len(service.dependencies)
    count = f'<span class="number">{_dependencies(number)}</span>' if number else ""
    return (
        f'<span class="dot" aria-hidden="true"></span><bdi class="name">{_text(service.name)}</bdi>'
        f'{count}<span class="state">{_WORDS[tone]}{_since(service.since, now)}</span>'
    )


def _dependency(one: PublicDependency) -> str:
    tone, said = ("well", "") if one.healthy else ("ill", '<span class="said">unhealthy</span>')
    return f'<li class="{tone}"><bdi>{_text(one.name)}</bdi>{said}</li>'


def _since(since: datetime | None, now: datetime) -> str:
    if since is None:
        return ""
    return (
        f' <time datetime="{_iso(since)}" title="since {_utc(since)}">{_length(now - since)}</time>'
    )


def _length(length: timedelta) -> str:
    """How long something has lasted, as people say it."""
    seconds = max(0.0, length.total_seconds())
    for limit, size, unit in (
        (60, 1, "s"),
        (3600, 60, "min"),
        (86_400, 3600, "h"),
    ):
        if seconds < limit:
            return f"for {int(seconds // size)} {unit}"
    days = int(seconds // 86_400)
    return f"for {days:,} {'day' if days == 1 else 'days'}"


def _moment(moment: datetime) -> str:
    return f'<time datetime="{_iso(moment)}">{_utc(moment)}</time>'


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _text(text: str) -> str:
    """What a stranger has written, on one line, and nothing but text."""
    return escape(harmless(" ".join(text.split())))


def _services(number: int) -> str:
    return f"{number:,} {'service' if number == 1 else 'services'}"


def _dependencies(number: int) -> str:
    return f"{number:,} {'dependency' if number == 1 else 'dependencies'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
