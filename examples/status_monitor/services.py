"""The services of the shop: where they are, what they answer, and what is to be made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from examples.status_monitor.fake.server import FakeService

SPRING = {
    "root": "components",
    "fields": {"name": "$key", "healthy": {"field": "status", "equals": "UP"}},
}
GATUS = {
    "root": "endpoints",
    "fields": {"name": "name", "healthy": "results.success", "latency": "duration"},
}


@dataclass(frozen=True)
class Service:
    name: str
    plays: str = "healthy"
    options: dict[str, Any] = field(default_factory=dict)
    """More columns of hybrid_monitors.services."""
    address_of: str = ""
    """The service whose address this one has too."""


def mapped(name: str, plays: str, mapping: dict[str, Any]) -> Service:
    return Service(name, plays, {"format": "mapping", "mapping": mapping})


SERVICES = (
    Service("orders"),
    Service("orders-report", address_of="orders"),
    Service("payments", "flapping"),
    Service("payments-eu", "flapping", {"fail_after": 2, "recover_after": 2}),
    Service("invoices", "slow"),
    Service("ledger", "hanging"),
    Service("taxes", "hanging_at_times"),
    Service("vouchers", "warning"),
    mapped("stock", "spring_kind", SPRING),
    mapped("warehouse", "spring", SPRING),
    mapped("shipping", "gatus", GATUS),
    mapped("customs", "changing", GATUS),
    Service("returns", "flat"),
    Service("parcels", "skipping"),
    Service("tracking", "late"),
    Service("couriers", "dripping"),
    Service("search", "recovering"),
    Service("catalogue"),
    Service("pictures", "large"),
    Service("ratings", "lying"),
    Service("prices"),
    Service("discounts", "twice"),
    Service("baskets", "closing"),
    Service("checkout", options={"depends_on": "payments"}),
    Service("accounts", "redirecting", {"follow": 1}),
    Service("target"),
    Service("sessions", "redirecting"),
    Service("passwords", "to_link_local", {"follow": 3}),
    Service("profiles", "round_and_round", {"follow": 3}),
    Service("newsletter", "failing"),
    Service("mail", "half"),
    Service("chat", "no_http"),
    Service("forum", "no_json"),
    Service("blog", "wrong_types"),
    Service("statistics", "nan"),
    Service("archive", "nul"),
    Service("backup", "deep"),
    Service("mirror", "bomb"),
    Service("feed", "endless"),
    Service(
        "status",
        "no_json",
        {
            "format": "status",
            "expect": {
                "and": [
                    {"status": {"equals": 200}},
                    {"body": {"contains": "It works"}},
                    {"latency": {"below": 1_000}},
                ]
            },
        },
    ),
)
_PER_HOST = 5
_FIRST_HOST = 11


def fakes() -> list[FakeService]:
    """Eight hosts play them; one service is asked by a name instead of an address."""
    return [
        FakeService(
            service.name,
            service.plays,
            "localhost"
            if service.name == "status"
            else f"127.0.0.{_FIRST_HOST + number // _PER_HOST}",
            number,
        )
        for number, service in enumerate(SERVICES)
        if not service.address_of
    ]
