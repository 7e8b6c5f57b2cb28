"""What docker-compose.yml promises, read as compose reads it."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scripts.processes import ROOT
from tests.docker.conftest import MONGO, ONE_SHOT, OURS
from tests.docker.engine import Docker
from tests.test_docs import section

MIB = 1024 * 1024
BUDGET_MIB = 700  # of what keeps running; docs/memory.md has the sum with engine and system
NOT_STARTED = {"replicas": 0, "resources": {}, "placement": {}}
SECRETS_FIRST = {"secrets": ("service_completed_successfully", True)}
IMAGES = ["gateway", "acme", "ingest", "monitoring", "mongo-init"]


def read(docker: Docker, *files: str, **variables: str) -> dict[str, Any]:
    clean = {name: value for name, value in docker.environment.items() if "WAYMARK" not in name}
    named = [part for file in files for part in ("--file", file)]
    document: dict[str, Any] = json.loads(
        Docker(clean | variables)("compose", *named, "config", "--format", "json")
    )
    return document


def running(services: dict[str, Any]) -> dict[str, Any]:
    """Return the services that `up` starts."""
    return {
        name: service for name, service in services.items() if service.get("deploy") != NOT_STARTED
    }


def limits(services: dict[str, Any]) -> dict[str, float]:
    return {name: int(service["mem_limit"]) / MIB for name, service in services.items()}


@pytest.fixture(scope="module")
def services(docker: Docker) -> dict[str, Any]:
    return running(read(docker, "docker-compose.yml")["services"])


def test_the_services_are_the_known_ones(services: dict[str, Any]) -> None:
    assert set(services) == OURS | MONGO | ONE_SHOT


def test_all_memory_limits_together_fit_the_box(services: dict[str, Any]) -> None:
    running = {name: service for name, service in services.items() if name not in ONE_SHOT}
    total = sum(limits(running).values())
    assert total <= BUDGET_MIB


@pytest.mark.parametrize("files", [(), ("docker-compose.ha.yml",)])
def test_nothing_waits_for_health_or_for_the_database(
    docker: Docker, files: tuple[str, ...]
) -> None:
    """On a slow machine that takes minutes, and who waits is never started when `up` gives up."""
    services = read(docker, "docker-compose.yml", *files)["services"]
    for name, service in running(services).items():
        waits = {
            other: (need["condition"], need["required"])
            for other, need in service.get("depends_on", {}).items()
        }
        # Nor on what is only started: Docker Compose makes anew what depends on what it makes anew.
        assert waits == ({} if name == "secrets" else SECRETS_FIRST), name
    # `up --wait` takes what it is told to end for ended, and else for broken.
    for name in ("token", "account", "storage", "person", "backup", "restore"):
        [need] = services[name]["depends_on"].values()
        assert need["condition"] == "service_completed_successfully"
        assert [*services[name]["depends_on"]] == ["mongo-init"]


def test_one_check_of_health_for_all_and_seldom(docker: Docker, services: dict[str, Any]) -> None:
    checks = {
        name: dict(service["healthcheck"])
        for name, service in services.items()
        if "healthcheck" in service
    }
    intervals = {name: check.pop("interval") for name, check in checks.items()}
    assert intervals.pop("configsvr") == "1m0s"
    assert set(intervals.values()) == {"2m0s"}
    first, *others = checks.values()
    assert others == [first] * len(others)
    # The engine must not be younger than Debian's, to which this is unknown.
    assert "start_interval" not in first
    chosen = read(docker, "docker-compose.yml", WAYMARK_HEALTH_INTERVAL="7s")["services"]
    for name in ("shard1", "configsvr"):
        assert chosen[name]["healthcheck"]["interval"] == "7s"


def test_each_image_of_ours_is_built_once(services: dict[str, Any]) -> None:
    # Docker Compose builds all at once: two builds of one tag meet, and the first `up` fails.
    built = [service["image"] for service in services.values() if "build" in service]
    ours = {services[name]["image"] for name in OURS | ONE_SHOT}
    assert sorted(built) == sorted(ours)


def test_each_image_of_ours_is_a_target_of_the_one_dockerfile(
    docker: Docker, services: dict[str, Any]
) -> None:
    everything = read(docker, "docker-compose.yml", COMPOSE_PROFILES="acme,backup")["services"]
    built = (service for service in everything.values() if "build" in service)
    targets = {service["image"]: service["build"]["target"] for service in built}
    assert targets == {f"waymark/{name}:latest": name for name in IMAGES}
    text = (ROOT / "Dockerfile").read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE)
    # With another day all packages are fetched again: it comes before them in what all build on.
    assert re.search(r" AS python\n(#.*\n)*ARG PACKAGES_DAY\nCOPY .*\nRUN install-packages ", text)
    assert stages[-len(IMAGES) :] == IMAGES


@pytest.mark.parametrize("files", [(), ("docker-compose.ha.yml",)])
def test_the_gateways_ports_alone_are_published_and_on_this_machine_only(
    docker: Docker, files: tuple[str, ...]
) -> None:
    def published(**variables: str) -> list[tuple[str, str, str, int]]:
        parts = read(docker, "docker-compose.yml", *files, **variables)["services"]
        address = parts["gateway"]["environment"]["GATEWAY_PUBLISHED"]  # so that it can warn
        assert address == variables.get("WAYMARK_PUBLISH", "127.0.0.1")
        return [
            (name, port["host_ip"], port["published"], port["target"])
            for name, service in parts.items()
            for port in service.get("ports", [])
        ]

    assert published() == [
        ("gateway", "127.0.0.1", "8080", 8080),
        ("gateway", "127.0.0.1", "8443", 8443),
    ]
    chosen = {"WAYMARK_PUBLISH": "10.0.0.1", "WAYMARK_PORT": "80", "WAYMARK_TLS_PORT": "443"}
    assert published(**chosen, WAYMARK_ADMIN_TOKEN_SHA256="0" * 64) == [
        ("gateway", "10.0.0.1", "80", 8080),
        ("gateway", "10.0.0.1", "443", 8443),
    ]


def test_certificates_come_with_a_profile_and_change_nothing_else(
    docker: Docker, services: dict[str, Any]
) -> None:
    names = {"GATEWAY_TLS_NAMES": "a.example b.example", "ACME_EMAIL": "me@a.example"}
    parts = running(
        read(docker, "docker-compose.yml", COMPOSE_PROFILES="acme", **names)["services"]
    )
    acme = parts.pop("acme")
    hostnames = [row["environment"]["GATEWAY_TLS_NAMES"] for row in (acme, parts["gateway"])]
    assert hostnames == ["a.example b.example"] * 2
    assert acme["environment"]["ACME_EMAIL"] == "me@a.example"
    parts["gateway"]["environment"]["GATEWAY_TLS_NAMES"] = None
    assert parts == services
    assert limits({"acme": acme}) == {"acme": 32}
    alike = ("user", "read_only", "cap_drop", "security_opt", "logging", "restart", "pids_limit")
    assert [acme[name] for name in alike] == [services["gateway"][name] for name in alike]
    assert acme["pull_policy"] == "never"
    assert not {"ports", "cap_add", "privileged", "network_mode", "devices"} & set(acme)
    ((mine,), (theirs,)) = (
        [mount for mount in service["volumes"] if mount["source"] == "acme"]
        for service in (acme, services["gateway"])
    )
    assert mine["target"] == theirs["target"]
    assert theirs["read_only"]
    assert "read_only" not in mine


def test_backups_each_day_come_with_a_profile_and_change_nothing_else(
    docker: Docker, services: dict[str, Any]
) -> None:
    chosen = {"WAYMARK_BACKUP_TO": "s3://bucket/prefix", "AWS_REGION": "eu-west-1"}
    parts = running(
        read(docker, "docker-compose.yml", COMPOSE_PROFILES="backup", **chosen)["services"]
    )
    daily = parts.pop("backup-daily")
    assert parts == services
    assert limits({"backup-daily": daily}) == {"backup-daily": 80}
    assert "s3://bucket/prefix" in daily["entrypoint"]
    assert daily["environment"]["AWS_REGION"] == "eu-west-1"


def test_the_gateway_knows_its_name_inside_and_those_that_are_given(docker: Docker) -> None:
    for variables, names in [
        ({}, ["gateway"]),
        ({"WAYMARK_HOSTNAMES": "a b"}, ["gateway", "a", "b"]),
    ]:
        services = read(docker, "docker-compose.yml", **variables)["services"]
        assert services["gateway"]["environment"]["WAYMARK_HOSTNAMES"].split() == names
        inside = urlsplit(services["monitoring"]["environment"]["GATEWAY_URL"]).hostname
        assert inside in names


def test_mongodb_is_the_official_image_unless_chosen(docker: Docker) -> None:
    environment = {name: v for name, v in docker.environment.items() if name != "MONGO_IMAGE"}
    services = read(Docker(environment), "docker-compose.yml")["services"]
    assert {services[name]["image"] for name in MONGO} == {"mongo:7.0"}


def test_the_override_of_the_tests_gives_mongodb_memory_and_changes_nothing_else(
    docker: Docker,
) -> None:
    written = read(docker, "docker-compose.yml")["services"]
    raised = read(docker, "docker-compose.yml", "tests/docker/emulated.yml")["services"]
    for name in MONGO:
        assert int(raised[name].pop("mem_limit")) > int(written[name].pop("mem_limit"))
    assert raised == written


def test_three_members_a_set_are_those_of_the_topology(docker: Docker) -> None:
    services = running(read(docker, "docker-compose.yml", "docker-compose.ha.yml")["services"])
    members = {
        f"{name}{more}" for name in ("configsvr", "shard1", "shard2") for more in ("", "-2", "-3")
    }
    assert set(services) == OURS | MONGO | ONE_SHOT | members
    assert "--topology=mongo/topology.ha.toml" in services["mongo-init"]["command"]
    for name in members:
        kind = name.removesuffix("-2").removesuffix("-3")
        assert services[name]["command"] == services[kind]["command"]
        data = [v["source"] for v in services[name]["volumes"] if v["target"] == "/data/db"]
        assert data == [name]
        assert services[name]["mem_limit"] == services[kind]["mem_limit"]


def test_with_two_gigabytes_the_same_runs_with_larger_limits(
    docker: Docker, services: dict[str, Any]
) -> None:
    larger = running(read(docker, "docker-compose.yml", "docker-compose.2gb.yml")["services"])
    before, after = limits(services), limits(larger)
    assert before.keys() == after.keys()
    assert all(before[name] <= after[name] for name in before)
    changed = ("mem_limit", "command", "environment")
    for name, service in larger.items():
        kept = {key: value for key, value in service.items() if key not in changed}
        assert services[name] | kept == services[name]


def test_the_shard_of_the_runbook_is_one_as_the_others(docker: Docker, tmp_path: Path) -> None:
    written = section("docs/runbook.md", "Adding a shard").split("```yaml\n")[1].split("```")[0]
    file = tmp_path / "docker-compose.override.yml"
    file.write_text(written.replace("docker-compose.yml", f"{ROOT}/docker-compose.yml"))
    parts = read(docker, "docker-compose.yml", str(file))["services"]
    other = json.loads(json.dumps(parts["shard1"]).replace("shard1", "shard3"))
    assert parts["shard3"] == other
