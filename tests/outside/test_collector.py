"""F1 F4: the shipped otel-collector.yaml in a real Collector, before a real Jaeger and a real
Prometheus.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.outside.sending import ATTRIBUTES, SERVICE, sent_metrics, sent_trace
from tests.support import opentelemetry_collector
from tests.support.jaeger import Jaeger
from tests.support.opentelemetry_collector import CONFIGURATION, OpenTelemetryCollector
from tests.support.outside import answers, missing
from tests.support.prometheus import Prometheus, Promtool


def validated(configuration: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """What `otelcol validate` says."""
    program = opentelemetry_collector.find() or missing(opentelemetry_collector.why_absent())
    command = [program, "validate", "--config", str(configuration)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **settings},
        check=False,
    )


def test_the_shipped_configuration_is_valid_without_any_setting() -> None:
    assert validated(CONFIGURATION).returncode == 0


def test_a_configuration_with_an_unknown_part_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(CONFIGURATION.read_text().replace("memory_limiter", "memory_unlimiter"))
    assert "memory_unlimiter" in validated(broken).stderr


async def test_spans_that_are_sent_to_the_collector_come_out_of_jaeger(
    jaeger: Jaeger, otel_collector: OpenTelemetryCollector
) -> None:
    trace = await sent_trace(otel_collector.endpoint)
    parent, child = await jaeger.until(trace, lambda spans: len(spans) == 2)
    assert (parent.name, parent.parent_id, parent.kind) == ("parent", None, "consumer")
    assert (child.name, child.parent_id, child.kind) == ("child", parent.span_id, "internal")
    assert child.links == ((trace, parent.span_id),)
    assert parent.attributes == ATTRIBUTES
    assert (parent.status, parent.status_message, child.status) == ("error", "no luck", "unset")
    assert parent.events == (("first", {"way": "ring"}), ("second", {}))
    assert parent.resource == SERVICE
    assert parent.start <= child.start <= child.end <= parent.end
    assert "sender" in await jaeger.services()


async def test_jaeger_takes_spans_without_a_collector(jaeger: Jaeger) -> None:
    trace = await sent_trace(jaeger.endpoint)
    assert len(await jaeger.until(trace, lambda spans: len(spans) == 2)) == 2


async def test_jaeger_has_no_spans_of_a_trace_that_nobody_sent(jaeger: Jaeger) -> None:
    assert await jaeger.trace("0" * 31 + "1") == []


async def test_metrics_that_are_sent_to_the_collector_are_scraped_from_it(
    otel_collector: OpenTelemetryCollector,
    prometheus: Callable[..., AbstractContextManager[Prometheus]],
) -> None:
    await sent_metrics(otel_collector.endpoint, "tests.things", 5)
    with prometheus(
        {"fleet": otel_collector.metrics_page, "collector": otel_collector.own_metrics_page}
    ) as server:
        [sample] = await server.until("tests_things_total")
        [accepted] = await server.until("otelcol_receiver_accepted_metric_points > 0")
    assert sample["value"][1] == "5"
    assert (
        sample["metric"].items()
        >= {"queue": "images", "job": "fleet", "exported_job": "sender"}.items()
    )
    assert accepted["metric"]["job"] == "collector"


def test_the_collector_says_that_it_is_well(otel_collector: OpenTelemetryCollector) -> None:
    assert answers(otel_collector.health_page)


def test_promtool_finds_fault_with_wrong_rules_only(promtool: Promtool, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("groups: [{name: one, rules: [{alert: Down, expr: 'up == 0'}]}]")
    assert promtool("check", "rules", str(rules)).returncode == 0
    rules.write_text("groups: [{name: one, rules: [{alert: Down, expr: 'up == = 0'}]}]")
    assert "parse error" in promtool("check", "rules", str(rules)).stderr
