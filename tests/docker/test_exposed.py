"""The stack published for other machines, by its own command: what a stranger finds there."""

import re
import subprocess
from pathlib import Path
from typing import Any

import requests

from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.docker.conftest import Stack
from tests.security import routes, scan

HEAL_SECONDS = 180.0


def configured(stack: Stack, folder: Path, address: str) -> str:
    """Publish the stack; return the administrator's token."""
    file = folder / "env"
    command = [f"{ROOT}/scripts/configure", "--plain", "--publish", address, "--file", str(file)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    [secret] = re.findall(r"^  (wm_\S+)$", text, re.MULTILINE)
    stack.docker.environment |= dict(line.split("=", 1) for line in file.read_text().splitlines())
    stack.compose("up", "--detach", "--wait")
    return str(secret)


def published(stack: Stack) -> set[tuple[str, int]]:
    """Return each address and port at which the engine takes connections for a container."""
    return {
        (port["HostIp"], int(port["HostPort"]))
        for container in stack.containers().values()
        for ports in container["NetworkSettings"]["Ports"].values()
        for port in ports or ()
    }


def test_a_stranger_finds_only_what_all_may_see(stack: Stack, tmp_path: Path) -> None:
    # The engine's own bridge: an address of this machine that is no loopback, and of no network.
    [network] = stack.docker.inspect("network", "bridge")
    address = network["IPAM"]["Config"][0]["Gateway"]
    headers = {"Authorization": f"Bearer {configured(stack, tmp_path, address)}"}
    port = int(stack.docker.environment["WAYMARK_PORT"])
    tls_port = int(stack.docker.environment["WAYMARK_TLS_PORT"])
    assert published(stack) == {(address, port), (address, tls_port)}

    def read(path: str) -> Any:
        url = f"http://{address}:{port}/api/v1{path}"
        return requests.get(url, headers=headers, timeout=30)

    eventually(lambda: read("/staff").status_code == 200, HEAL_SECONDS)

    def stored() -> list[list[dict[str, Any]]]:
        """Return what a scan could have changed, without what time changes."""
        lists = [
            read(path).json()["data"] for path in ("/staff", "/beacons", "/tokens", "/accounts")
        ]
        aging = ("age_seconds", "freshness")
        return [[{k: row[k] for k in row if k not in aging} for row in rows] for rows in lists]

    before = stored()
    wanted = scan.asked(routes.everything(read("/openapi.json").json()))
    by_port = scan.scan(address, [port, tls_port], wanted)
    for answers in by_port.values():
        assert len(answers) == len(wanted)
        assert scan.beyond(answers) == []
    readable = {route.path for route in by_port[port] if route.status == 200}
    assert readable >= {"/healthz", "/monitoring/login", "/_circuit/ingest"}
    assert stored() == before
