"""Services that no database knows, and one poll of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hybrid_runner.model.monitors import Polled, Service
from hybrid_runner.monitors.answers.addresses import AddressRules, Lookup
from hybrid_runner.monitors.answers.poll import poll_group
from hybrid_runner.monitors.answers.prepared import Preparations
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.answers.session import open_session

NOW = datetime(2026, 11, 19, 20, 0, tzinfo=UTC)


def service(url: str, **changed: Any) -> Service:
    values: dict[str, Any] = {
        "id": 1,
        "name": "orders",
        "url": url,
        "every": timedelta(seconds=30),
        "timeout": timedelta(seconds=10),
        "format": "dependencies",
        "mapping": None,
        "expect": None,
        "headers": None,
        "follow": 0,
        "fail_after": 1,
        "recover_after": 1,
        "is_asked": False,
        "suppressed": None,
        "standing": None,
    }
    return Service(**values | changed)


async def poll(
    *services: Service,
    rules: AddressRules | None = None,
    secrets: Mapping[str, Secret] | None = None,
    lookup: Lookup | None = None,
    tls: Any = None,
) -> list[Polled]:
    options: dict[str, Any] = {"lookup": lookup} if lookup else {}
    async with open_session(rules, tls=tls, **options) as session:
        preparations = Preparations(secrets or {})
        return await poll_group(session, services, now=NOW, preparations=preparations)


async def poll_one(url: str, **changed: Any) -> Polled:
    """With the rules, secrets and lookup that are named among what is changed."""
    ours = {
        name: changed.pop(name) for name in ("rules", "secrets", "lookup", "tls") if name in changed
    }
    (polled,) = await poll(service(url, **changed), **ours)
    return polled
