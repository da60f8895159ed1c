"""docs/http.md names every page that a worker serves, and every number of /health."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from aiohttp import hdrs

from hybrid_runner.policy.last_minute import QUIET
from hybrid_runner.settings import Settings
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.hosts import HostCheck
from hybrid_runner.web.pages.reports import WorkerReports, health_of
from hybrid_runner.web.routes import make_application
from hybrid_runner.worker.report.status import QueueStatus
from tests.docs.blocks import ROOT, blocks
from tests.web.test_health import queue, status

PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")


def test_the_page_names_every_page_and_no_other() -> None:
    database = PageDatabase(Settings(), lambda: None)
    application = make_application(
        WorkerReports(lambda: None), database, hosts=HostCheck([]), readers=1
    )
    served = {
        (route.method, route.resource.canonical)
        for route in application.router.routes()
        if route.resource is not None and route.method != hdrs.METH_HEAD
    }
    assert set(re.findall(r"`(GET|POST) (/[\w/{}]+)`", PAGE)) == served


@pytest.mark.parametrize(
    "one",
    [
        queue(),
        dataclasses.replace(queue(), last_minute=dataclasses.replace(QUIET, looks_per_minute=3)),
    ],
    ids=["a quiet minute", "some looks"],
)
def test_the_page_shows_every_number_of_health(one: QueueStatus) -> None:
    shown, *_ = (json.loads(block.text) for block in blocks("docs/http.md", "json"))
    said = health_of(status(one))
    assert said["worker"] is not None
    assert list(shown) == list(said)
    assert list(shown["worker"]) == list(said["worker"])
    assert list(shown["worker"]["last_minute"]) == list(said["worker"]["last_minute"])
