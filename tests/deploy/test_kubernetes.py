"""The Kubernetes manifests, against the API's own schemas and against what the product promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import psycopg
import pytest
import yaml

from hybrid_runner.settings import Settings
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.server import PageServer
from tests.support.pages import browser
from tests.support.ports import free_port

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.30", "1.37")
MANIFESTS: list[tuple[str, dict[str, Any]]] = [
    (f"{file.relative_to(FOLDER)}: {manifest['kind']}", manifest)
    for file in sorted(FOLDER.rglob("*.yaml"))
    for manifest in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
BUILT_IN = [
    each
    for each in MANIFESTS
    if not any(word in each[1]["apiVersion"] for word in ("keda", "coreos", "kustomize"))
]
OURS = {"app.kubernetes.io/name": "hybrid-runner", "app.kubernetes.io/component": "worker"}


def one(kind: str, file: str = "") -> dict[str, Any]:
    """The manifest of that kind."""
    [found] = [
        manifest
        for name, manifest in MANIFESTS
        if manifest["kind"] == kind and name.startswith(file)
    ]
    return found


def pods() -> list[dict[str, Any]]:
    """The two templates."""
    return [one(kind)["spec"]["template"] for kind in ("Deployment", "Job")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "manifest", [each[1] for each in BUILT_IN], ids=[each[0] for each in BUILT_IN]
)
def test_the_api_accepts_it_without_a_field_too_many(
    manifest: dict[str, Any], version: str
) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_field_is_seen() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one("Deployment") | {"specs": {}}, VERSIONS[-1], strict=True)


def test_kustomizations_name_every_file_beside_them_but_secrets_and_alternatives() -> None:
    for file in FOLDER.rglob("kustomization.yaml"):
        named = set(yaml.safe_load(file.read_text(encoding="utf-8"))["resources"])
        beside = {other.name for other in file.parent.glob("*.yaml")} - {file.name}
        assert beside - named <= {"secrets.example.yaml", "by-sql.yaml"}
        assert named <= beside


def test_pods_run_without_any_privilege() -> None:
    for pod in pods():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]
            assert container["resources"]["limits"].keys() >= {"memory", "ephemeral-storage"}


def test_only_the_migration_sees_the_owners_password() -> None:
    names = {
        kind: {reference["name"] for reference in secrets(kind).values()}
        for kind in ("Deployment", "Job")
    }
    assert names == {"Deployment": {"hybrid-runner-worker"}, "Job": {"hybrid-runner-owner"}}


def secrets(kind: str) -> dict[str, dict[str, Any]]:
    """What is taken from secrets, by the variable."""
    environment = one(kind)["spec"]["template"]["spec"]["containers"][0]["env"]
    return {entry["name"]: entry["valueFrom"]["secretKeyRef"] for entry in environment}


def test_every_address_of_postgres_asks_for_encryption_and_the_right_server() -> None:
    example = (FOLDER / "secrets.example.yaml").read_text(encoding="utf-8")
    addresses = re.findall(r"dsn: (postgresql://\S+)", example)
    assert len(addresses) == 4
    for address in addresses:
        assert "sslmode=verify-full" in address


def test_secret_settings_are_in_the_example_and_a_worker_starts_without_the_optional_ones() -> None:
    secret = {
        f"HYBRID_RUNNER_{name.upper()}"
        for name, field in Settings.fields().items()
        if name.endswith("dsn") or "SecretStr" in str(field.annotation)
    }
    taken = secrets("Deployment")
    assert set(taken) == secret
    assert not secret & set(one("ConfigMap")["data"])
    assert {name for name, reference in taken.items() if not reference.get("optional")} == {
        "HYBRID_RUNNER_DSN"
    }
    example = (FOLDER / "secrets.example.yaml").read_text(encoding="utf-8").split("---")[0]
    assert "name: hybrid-runner-worker" in example
    places = set(
        re.findall(r"^  (?:# )?(\S+): ", example.partition("stringData:")[2], re.MULTILINE)
    )
    assert places == {reference["key"] for reference in taken.values()}


def test_a_lost_database_makes_a_worker_unready_and_does_not_restart_it() -> None:
    [container] = one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "http"}
    assert container["livenessProbe"]["exec"]["command"] == ["probe", "alive"]
    startup = container["startupProbe"]
    assert startup["httpGet"]["path"] == "/ready"
    assert (
        startup["periodSeconds"] * startup["failureThreshold"]
        > Settings.fields()["start_timeout"].default.total_seconds()
    )


def test_a_rollout_waits_until_a_lost_database_would_show() -> None:
    assert one("Deployment")["spec"]["minReadySeconds"] >= 15


def test_a_pod_takes_a_bounded_part_of_its_node_and_no_variables_of_services() -> None:
    for pod in pods():
        assert pod["spec"]["enableServiceLinks"] is False
        for container in pod["spec"]["containers"]:
            assert {"memory", "ephemeral-storage"} <= set(container["resources"]["limits"])


def test_a_worker_has_more_time_to_stop_than_its_jobs_have_to_end() -> None:
    """D6"""
    spec = one("Deployment")["spec"]["template"]["spec"]
    before = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = Settings.fields()["grace"].default.total_seconds()
    assert spec["terminationGracePeriodSeconds"] >= before + grace + 10


def test_a_long_migration_is_not_ended_half_way() -> None:
    job = one("Job")["spec"]
    assert "activeDeadlineSeconds" not in job | job["template"]["spec"]


def test_settings_that_are_given_are_settings_that_exist() -> None:
    given = [name for name in one("ConfigMap")["data"] if name.startswith("HYBRID_RUNNER_")]
    assert given
    assert {name.removeprefix("HYBRID_RUNNER_").lower() for name in given} <= set(Settings.fields())


def test_everything_that_selects_selects_the_workers() -> None:
    labels = one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert labels == OURS
    assert one("Deployment")["spec"]["selector"]["matchLabels"] == OURS
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == OURS
    assert one("Service")["spec"]["selector"] == OURS
    assert one("PodMonitor")["spec"]["selector"]["matchLabels"] == OURS
    reached = one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items()
    assert all(reached <= pod["metadata"]["labels"].items() for pod in pods())


def test_autoscalers_and_monitors_name_what_is_there() -> None:
    ports = {
        port["name"]
        for port in one("Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"]
    }
    assert {
        endpoint["port"] for endpoint in one("PodMonitor")["spec"]["podMetricsEndpoints"]
    } <= ports
    for file in ("keda/by-scale", "keda/by-sql"):
        scaled = one("ScaledObject", file)["spec"]
        assert scaled["scaleTargetRef"]["name"] == one("Deployment")["metadata"]["name"]
        assert scaled["minReplicaCount"] < scaled["maxReplicaCount"]
    [by_page] = one("ScaledObject", "keda/by-scale")["spec"]["triggers"]
    service = one("Service")
    assert by_page["type"] == "metrics-api"
    assert (
        by_page["metadata"]["url"]
        == f"http://{service['metadata']['name']}.jobs.svc:{service['spec']['ports'][0]['port']}/scale"
    )
    [by_query] = one("ScaledObject", "keda/by-sql")["spec"]["triggers"]
    assert by_query["type"] == "postgresql"
    assert by_query["authenticationRef"]["name"] == one("TriggerAuthentication")["metadata"]["name"]
    secrets = {
        manifest["metadata"]["name"] for _, manifest in MANIFESTS if manifest["kind"] == "Secret"
    }
    assert one("TriggerAuthentication")["spec"]["secretTargetRef"][0]["name"] in secrets


def test_no_fleet_is_taken_down_to_nobody_who_measures() -> None:
    """With no worker there is no metric: HybridRunnerNoWorker could not tell an idle fleet from a
    lost one.
    """
    assert [
        one("ScaledObject", f"keda/{file}")["spec"]["minReplicaCount"]
        for file in ("by-scale", "by-sql")
    ] == [1, 1]


def test_a_lost_database_does_not_change_how_many_workers_there_are() -> None:
    """/scale says 503 then; a fallback would be a number in place of the fleet's own."""
    assert all(
        "fallback" not in one("ScaledObject", f"keda/{file}")["spec"]
        for file in ("by-scale", "by-sql")
    )


async def test_page_and_query_want_as_many_workers_however_many_queues_there_are(dsn: str) -> None:
    """F6: a worker has slots of its own in each queue, so the queue that wants most decides."""
    [trigger] = one("ScaledObject", "keda/by-sql")["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    assert f"{query};" in (FOLDER.parents[1] / "docs" / "http.md").read_text(encoding="utf-8")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO hybrid_runner.jobs (kind, queue) SELECT 'work', queue FROM"
            " generate_series(1, 400), unnest('{a, b, c, d}'::text[]) AS queue"
        )
        connection.execute("SET ROLE hybrid_runner_reader")
        assert connection.execute(query).fetchone() == (2,)
    port = free_port()
    async with (
        PageServer(
            "127.0.0.1", port, database=PageDatabase(Settings.load({}, dsn=dsn), lambda: dsn)
        ),
        browser(port) as client,
    ):
        said = (await client.get("/scale")).body
    assert (said["wanted"], said["backlog"]) == (2, 1600)
