"""The stack as other machines see it: nothing but the log-in, health and the circuit's answer."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.native.layout import Layout
from scripts.processes.ports import free_port
from tests.security import routes, scan
from tests.security.outside import OTHERS, STACKS, Machine
from tests.stack.conftest import Stack

pytestmark = pytest.mark.long

AS_ADMIN = """
import sys, requests
answer = requests.get(sys.argv[1], headers={"Authorization": sys.argv[2]}, verify=False, timeout=30)
answer.raise_for_status()
print(answer.text)
"""


class Published(Stack):
    """A stack on a machine of its own, published by `./scripts/configure`."""

    def __init__(self, root: Path, folder: Path, machine: Machine, kind: str) -> None:
        super().__init__(root, folder / "data", [*machine.prefix, "--"])
        self.published = {self.port}
        self.outside = f"http://{STACKS}:{self.port}"
        file = folder / "env"
        command = [f"{root}/scripts/configure", "--plain", "--publish", STACKS, "--file", str(file)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        [self.admin] = re.findall(r"^  (wm_\S+)$", text, re.MULTILINE)
        self.environment |= dict(line.split("=", 1) for line in file.read_text().splitlines())
        if kind == "tls":
            tls = folder / "tls"
            subprocess.run([f"{root}/scripts/certificate", tls], check=True, capture_output=True)
            port = free_port()
            self.published.add(port)
            self.outside = f"https://{STACKS}:{port}"
            self.environment |= {
                "GATEWAY_TLS_CERTIFICATE": f"{tls}/certificate.pem",
                "GATEWAY_TLS_KEY": f"{tls}/key.pem",
                "GATEWAY_TLS_LISTEN": f"{STACKS}:{port}",
                "GATEWAY_INTERNAL_LISTEN": f"127.0.0.1:{free_port()}",
            }


@pytest.fixture(params=["plain", "tls"])
def machines(
    root: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Published, Machine, Machine]]:
    with Machine() as inside, Machine(inside) as outside:
        inside.connect(STACKS, outside, OTHERS)
        stack = Published(root, tmp_path, inside, request.param)
        try:
            stack.up()
            yield stack, inside, outside
        finally:
            stack.down()


def test_a_stranger_finds_only_what_all_may_see(
    machines: tuple[Published, Machine, Machine],
) -> None:
    stack, inside, outside = machines

    def read(path: str) -> str:
        url = f"{stack.outside}/api/v1{path}"
        return outside.run(sys.executable, "-c", AS_ADMIN, url, f"Bearer {stack.admin}")

    def kept() -> list[object]:
        paths = ("/staff", "/beacons", "/tokens", "/accounts")
        return [json.loads(read(path))["data"] for path in paths]

    document, before = json.loads(read("/openapi.json")), kept()

    # Every socket of the stack that takes what comes: the machine has no others.
    listening = inside.listening()
    layout = Layout.saved(stack.data)
    assert layout
    internal = {*layout.ingest_ports, layout.monitoring_port, layout.mongod_port}
    assert {protocol for protocol, _ in listening} == {"tcp"}
    ports = {port for _, port in listening}
    assert ports >= internal | stack.published

    wanted = scan.asked(routes.everything(document))
    command = (sys.executable, "-m", "tests.security.scan", STACKS, *sorted(ports))
    answers = json.loads(outside.run(*command, typed=json.dumps(wanted)))
    by_port = {
        int(port): [scan.Finding(*finding) for finding in all_] for port, all_ in answers.items()
    }
    assert set(by_port) == stack.published
    for all_ in by_port.values():
        assert len(all_) == len(wanted) > 900
        assert scan.beyond(all_) == []
    readable = {
        finding.path for all_ in by_port.values() for finding in all_ if finding.status == 200
    }
    assert readable >= {"/healthz", "/monitoring/login", "/_circuit/ingest"}
    assert kept() == before
