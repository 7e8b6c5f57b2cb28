"""What confines the containers, read without Docker; tests/docker asks Docker Compose itself."""

from typing import Any

import pytest
import yaml

from scripts.box.budget import BOX_MIB, SYSTEM_MIB
from scripts.processes import ROOT

DAEMONS_POLICY = "unless-stopped"
POLICIES = {
    "secrets": "no",
    "mongo-init": "on-failure",
    "token": "no",
    "account": "no",
    "storage": "no",
    "backup": "no",
    "restore": "no",
    "person": "no",
    "publishing": "no",
}


def services(name: str) -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / name).read_text())["services"]
    return document


SERVICES = services("docker-compose.yml")
# What would undo the confinement, or give a container what is not its own.
DANGEROUS = {
    *("privileged", "cap_add", "devices", "group_add", "ipc", "pid", "userns_mode", "sysctls"),
    *("device_cgroup_rules", "extra_hosts", "security_opts", "oom_kill_disable", "ulimits"),
}


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_confined(name: str) -> None:
    one = SERVICES[name]
    user, group = map(int, one["user"].split(":"))
    assert min(user, group) > 0
    assert not DANGEROUS & one.keys()
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert 0 < one["pids_limit"] <= 512
    assert one["mem_limit"].endswith("m")
    assert one.get("network_mode") == ("none" if name == "secrets" else None)
    assert one["restart"] == POLICIES.get(name, DAEMONS_POLICY)
    # A log that nobody looks at must not fill the disk: 10 MB of each container.
    assert one["logging"] == {
        "driver": "json-file",
        "options": {"max-size": "5m", "max-file": "2"},
    }
    assert one["init"] is True  # else a health check could not end what hangs
    assert ("healthcheck" in one) == (name not in ("secrets", "mongo-init", "acme"))
    assert name not in ("ingest-1", "ingest-2") or one["cpus"] == 0.3
    assert one["image"].startswith("${MONGO_IMAGE") or one["pull_policy"] == "never"
    assert not [mount for mount in one.get("volumes", ()) if mount.startswith((".", "/", "~"))]


def test_the_gateway_alone_is_published_and_on_this_machine() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["gateway"]
    for port in SERVICES["gateway"]["ports"]:
        assert port.startswith("${WAYMARK_PUBLISH:-127.0.0.1}:")


def test_who_is_on_which_network() -> None:
    assert yaml.safe_load((ROOT / "docker-compose.yml").read_text())["networks"] == {
        "front": None,
        "data": {"internal": True},
    }
    named = {name: service.get("networks") for name, service in SERVICES.items()}
    both = {name for name, networks in named.items() if networks == ["front", "data"]}
    # Backups go to a store that may be anywhere.
    assert both == {"ingest-1", "ingest-2", "backup", "backup-daily", "restore"}
    front = {name for name, networks in named.items() if networks == ["front"]}
    assert front == {"gateway", "monitoring", "acme"}


def test_secrets_are_read_and_not_written() -> None:
    for name, service in SERVICES.items():
        for mount in service.get("volumes", ()):
            source, _, how = (
                mount.split(":", 2) if mount.count(":") > 1 else (*mount.split(":"), "")
            )
            if source.endswith("secret") or source == "secrets":
                assert (how == "ro,nocopy") == (name != "secrets"), (name, mount)


@pytest.mark.parametrize("name", services("docker-compose.ha.yml"))
def test_the_other_file_undoes_nothing(name: str) -> None:
    one = services("docker-compose.ha.yml")[name]
    known = {"command", "environment", "volumes", "depends_on"}
    assert set(one) - {"extends"} <= known
    assert name in SERVICES or one["extends"]["service"] in SERVICES


def test_two_gigabytes_hold_all_that_may_be_full() -> None:
    larger = services("docker-compose.2gb.yml")
    assert larger.keys() <= SERVICES.keys()
    engine_mib = 194  # the highest of docs/memory.md, which has the sum
    used_mib = SYSTEM_MIB + engine_mib
    for name, service in SERVICES.items():
        own = larger.get(name, {})
        assert own.keys() <= {"mem_limit", "command", "environment"}
        before, after = map(limit_mib, (service, service | own))
        assert before < after or not own
        # What a server is stays.
        command = service.get("command", [])
        assert (own.get("command") or command)[: len(command)] == command
        if service["restart"] == DAEMONS_POLICY:
            used_mib += after
    assert used_mib == 1846
    assert used_mib <= 2 * BOX_MIB
    settings = yaml.safe_load((ROOT / "mongo" / "mongod.conf").read_text())
    string = settings["storage"]["wiredTiger"]["engineConfig"]["configString"]
    for shard in ("shard1", "shard2"):
        cache = string.replace("cache_size=48M", "cache_size=256M")
        assert larger[shard]["command"][-1] == f"--wiredTigerEngineConfigString={cache}"


def limit_mib(service: dict[str, Any]) -> int:
    """Return a container's limit of memory."""
    return int(service["mem_limit"].removesuffix("m"))
