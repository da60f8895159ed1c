"""deploy/compose.yaml as it stands in the file."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
)["services"]


def test_it_makes_logins_and_migrates_as_the_owner_before_workers_start() -> None:
    """F6: the owner is none of the server's superusers."""
    assert SERVICES["roles"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    migrate, worker = SERVICES["migrate"], SERVICES["worker"]
    assert migrate["command"] == ["migrate"]
    assert migrate["depends_on"] == {"roles": {"condition": "service_completed_successfully"}}
    assert "//jobs_owner@" in migrate["environment"]["HYBRID_RUNNER_DSN"]
    assert worker["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert worker["deploy"]["replicas"] >= 2
    assert "//jobs_worker@" in worker["environment"]["HYBRID_RUNNER_DSN"]


def test_no_password_is_part_of_an_address_where_some_characters_would_mean_something_else() -> (
    None
):
    given = [
        service["environment"]
        for service in SERVICES.values()
        if "HYBRID_RUNNER_DSN" in service.get("environment", {})
    ]
    assert len(given) == 2
    for environment in given:
        assert "$" not in environment["HYBRID_RUNNER_DSN"]
        assert "PASSWORD:?" in environment["PGPASSWORD"]


def test_every_password_has_to_be_given_and_is_good_for_one_thing() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{\w+PASSWORD(..)", text)) == {":?"}
    given = [SERVICES[name]["environment"]["PGPASSWORD"] for name in ("worker", "migrate", "roles")]
    assert given[2] == SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert len(set(given)) == 3


def test_passwords_are_made_once_by_chance_and_nobody_else_reads_them(tmp_path: Path) -> None:
    program = tmp_path / "make-passwords"
    shutil.copy(DEPLOY / "make-passwords", program)
    subprocess.run([program], check=True)
    file = tmp_path / ".env"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made = dict(line.split("=") for line in file.read_text().splitlines())
    asked = re.findall(r"\$\{(\w+PASSWORD)", (DEPLOY / "compose.yaml").read_text("utf-8"))
    assert set(made) == set(asked)
    assert len(set(made.values())) == len(made)
    assert all(re.fullmatch("[0-9a-f]{48}", password) for password in made.values())
    subprocess.run([program], check=True)
    assert made == dict(line.split("=") for line in file.read_text().splitlines())


def test_the_collector_is_heard_by_this_machine_alone_unless_told_otherwise() -> None:
    """Nobody says to it who he is."""
    text = (DEPLOY.parent / "otel-collector.yaml").read_text(encoding="utf-8")
    assert "0.0.0.0" not in text
    assert SERVICES["collector"]["environment"]["COLLECTOR_HOST"] == "0.0.0.0"
    assert "ports" not in SERVICES["collector"]


def test_the_collector_and_jaeger_are_those_that_tests_run_against() -> None:
    """A tag that nothing was tried with may read another otel-collector.yaml."""
    built = dict(
        re.findall(
            r"^\s+(\S+) v([\d.]+)$",
            (DEPLOY.parent / "tools" / "go" / "go.mod").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    assert (
        SERVICES["collector"]["image"]
        == f"otel/opentelemetry-collector:{built['go.opentelemetry.io/collector/otelcol']}"
    )
    assert built["github.com/jaegertracing/jaeger"] == "1.76.0"
    assert (
        SERVICES["jaeger"]["image"] == "jaegertracing/jaeger:2.13.0"
    )  # the other number of the same release
    tried = (DEPLOY / "README.md").read_text(encoding="utf-8").partition("## What was tried")[2]
    for service in ("collector", "jaeger"):
        assert SERVICES[service]["image"].partition(":")[2] in tried


def test_a_worker_has_more_time_to_stop_than_its_jobs_have_to_end() -> None:
    """D6"""
    assert int(SERVICES["worker"]["stop_grace_period"].removesuffix("s")) > 25


def test_nothing_of_it_can_be_reached_from_other_machines() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_service_can_write_its_image_or_become_more() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "cap_add" not in service or name == "postgres"


def test_the_image_is_built_once_and_before_the_workers_that_run_it() -> None:
    """Two builds of one tag at a time are an error to newer Composes, and a pull of it would get a
    stranger's image, if any.
    """
    assert [name for name, service in SERVICES.items() if "build" in service] == ["migrate"]
    ours = {
        name: service
        for name, service in SERVICES.items()
        if service["image"] == SERVICES["migrate"]["image"]
    }
    assert set(ours) == {"migrate", "worker"}
    assert ours["worker"]["pull_policy"] == "never"
    assert set(ours["worker"]["depends_on"]) == {"migrate"}


def test_every_file_that_is_mounted_is_there() -> None:
    mounts = [
        volume
        for service in SERVICES.values()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]
    assert len(mounts) >= 5
    assert all((DEPLOY / mount.split(":")[0]).exists() for mount in mounts)
    assert all(mount.endswith(":ro") for mount in mounts)


def test_prometheus_asks_services_that_are_there_and_each_figure_comes_by_one_way_alone() -> None:
    configuration = yaml.safe_load(
        (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    )
    assert [(DEPLOY / "prometheus" / file).exists() for file in configuration["rule_files"]] == [
        True
    ]
    scraped = {job["job_name"]: job for job in configuration["scrape_configs"]}
    [names] = [entry["names"] for entry in scraped["hybrid-runner"]["dns_sd_configs"]]
    assert names == ["worker"]
    hosts = [
        target.split(":")[0]
        for entry in scraped["collector"]["static_configs"]
        for target in entry["targets"]
    ]
    assert {*names, *hosts} <= set(SERVICES)
    assert SERVICES["worker"]["environment"]["OTEL_METRICS_EXPORTER"] == "none"
