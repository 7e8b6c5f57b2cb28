"""The limits, the users, the ports and the passwords are in force, not only written down."""

import itertools
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from scripts.processes.control_groups import ControlGroup
from tests.docker.conftest import MONGO, OURS, Stack

MIB = 1024 * 1024
SERVERS = ["configsvr:27019", "shard1:27018", "shard2:27018", "mongos-1:27017", "mongos-2:27017"]
UNAUTHORIZED = 13
# Runs in a container beside the servers; tells how each of them answers a stranger.
STRANGER = """
import json, sys
from pymongo import MongoClient
from pymongo.errors import OperationFailure
commands = {
    "read": ("ICT3102", {"find": "staff"}),
    "write": ("ICT3102", {"insert": "staff", "documents": [{"a": 1}]}),
    "drop": ("ICT3102", {"dropDatabase": 1}),
    "databases": ("admin", {"listDatabases": 1}),
    "users": ("admin", {"usersInfo": 1}),
    "root": ("admin", {"createUser": "x", "pwd": "x", "roles": ["root"]}),
    "settings": ("admin", {"getParameter": "*"}),
    "log": ("admin", {"getLog": "global"}),
    "stop": ("admin", {"shutdown": 1}),
    "members": ("admin", {"replSetGetStatus": 1}),
    "shards": ("admin", {"listShards": 1}),
}
answers = {}
for server in sys.argv[1:]:
    client = MongoClient(server, directConnection=True, timeoutMS=10000)
    for name, (database, command) in commands.items():
        try:
            client[database].command(command)
            answers[f"{server} {name}"] = 0
        except OperationFailure as error:
            answers[f"{server} {name}"] = error.code
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def containers(stack: Stack) -> dict[str, dict[str, Any]]:
    return stack.containers()


@pytest.fixture(scope="module")
def pids(stack: Stack) -> dict[str, int]:
    return stack.pids()


@pytest.fixture(scope="module")
def written(stack: Stack) -> dict[str, Any]:
    services: dict[str, Any] = json.loads(stack.compose("config", "--format", "json"))["services"]
    return services


@pytest.mark.parametrize("name", sorted(OURS | MONGO))
def test_the_kernel_enforces_the_memory_limit(
    containers: dict[str, dict[str, Any]], pids: dict[str, int], written: dict[str, Any], name: str
) -> None:
    limit = int(written[name]["mem_limit"])
    assert containers[name]["HostConfig"]["Memory"] == limit
    assert ControlGroup.of(pids[name]).limits().memory_bytes == limit


@pytest.mark.parametrize("name", ["ingest-1", "ingest-2"])
def test_the_kernel_enforces_the_cpu_limit(pids: dict[str, int], name: str) -> None:
    assert ControlGroup.of(pids[name]).limits().cpu == pytest.approx(0.3)


@pytest.mark.parametrize("name", sorted(OURS | MONGO))
def test_no_process_is_root_or_may_become_it(stack: Stack, name: str) -> None:
    lines = Path(f"/proc/{stack.program(name)}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    assert set(status["Uid"].split()) == {"999" if name in MONGO else "10001"}
    assert "0" not in status["Gid"].split()
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("name", sorted(OURS | MONGO))
def test_the_root_file_system_cannot_be_written(stack: Stack, name: str) -> None:
    script = "! touch /x /usr/x /etc/x 2>/dev/null && touch /tmp/x"
    stack.compose("exec", "--no-TTY", name, "sh", "-c", script)


def test_only_the_gateways_ports_are_open_and_only_on_this_machine(
    containers: dict[str, dict[str, Any]], stack: Stack
) -> None:
    bound = {
        (name, address["HostIp"], address["HostPort"])
        for name, container in containers.items()
        for addresses in container["NetworkSettings"]["Ports"].values()
        for address in addresses or []
    }
    port = stack.url.rpartition(":")[2]
    tls_port = stack.docker.environment["WAYMARK_TLS_PORT"]
    assert bound == {("gateway", "127.0.0.1", published) for published in (port, tls_port)}
    front = stack.docker.inspect("network", "waymark-tests_front")[0]
    outside = front["IPAM"]["Config"][0]["Gateway"]  # an address of this machine, not 127.0.0.1
    with socket.socket() as probe:
        probe.settimeout(2)
        assert probe.connect_ex((outside, int(port))) != 0


def test_a_stranger_can_do_nothing_at_any_server(stack: Stack) -> None:
    run = ["run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "python3", "mongo-init"]
    said = stack.compose(*run, "-c", STRANGER, *SERVERS)
    answers = json.loads(said.splitlines()[-1])
    allowed = {server: code for server, code in answers.items() if code != UNAUTHORIZED}
    # A mongos knows no replica set, a mongod no shards: what does not exist is refused otherwise.
    assert {name for name in allowed if not name.endswith((" members", " shards"))} == set()
    assert 0 not in allowed.values()


@pytest.mark.parametrize("name", ["gateway", "monitoring"])
def test_what_needs_no_database_cannot_reach_it(stack: Stack, name: str) -> None:
    script = "import socket; socket.create_connection(('mongos-1', 27017), 2)"
    done = stack.docker.run("exec", f"waymark-tests-{name}-1", "python3", "-c", script)
    assert done.returncode != 0
    assert "gaierror" in done.stderr


def test_each_secret_is_where_it_is_needed_and_nowhere_else(stack: Stack) -> None:
    def shell(service: str, script: str) -> str:
        return stack.compose("exec", "--no-TTY", service, "sh", "-c", script)

    names = ("keyfile", "admin_password", "app_password", "session_key", "page_token")
    kept = {name: shell("shard1", f"cat /secrets/{name}") for name in names}
    assert len(set(kept.values())) == 5
    assert min(map(len, kept.values())) >= 32
    assert shell("ingest-1", "cat /app-secret/*") == kept["app_password"] + kept["session_key"]
    assert shell("ingest-1", "cat /page-secret/*") == kept["page_token"]
    assert shell("ingest-1", "ls / | grep -c secret") == "2"
    assert shell("monitoring", "cat /page-secret/*") == kept["page_token"]
    assert shell("monitoring", "ls / | grep -c secret") == "1"
    assert shell("gateway", "ls / | grep secret || echo none") == "none"
    texts = stack.compose("logs") + json.dumps(list(stack.containers().values()))
    assert [name for name, secret in kept.items() if secret in texts] == []


@pytest.mark.parametrize("image", ["gateway", "ingest", "monitoring", "mongo-init"])
def test_an_image_has_no_tools_to_build_with(stack: Stack, image: str) -> None:
    script = "command -v pip pip3 gcc cc make || python3 -m pip --version || echo none"
    run = ["run", "--rm", "--network=none", "--entrypoint=sh", f"waymark/{image}", "-c", script]
    assert stack.docker(*run).splitlines() == ["none"]


def test_images_share_their_layers(stack: Stack) -> None:
    def layers(image: str) -> list[str]:
        digests: list[str] = stack.docker.inspect("image", image)[0]["RootFS"]["Layers"]
        return digests

    def shared(one: str, other: str) -> int:
        pairs = zip(layers(f"waymark/{one}"), layers(f"waymark/{other}"), strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    base = len(layers(stack.images.base))
    # The script that installs, Python, and what tells whether a container lives; on them the
    # authorities and the packages of the web; on those the ones of the database.
    python, web, driver = base + 3, base + 5, base + 6
    assert shared("gateway", "monitoring") == python
    assert shared("ingest", "monitoring") == web
    assert shared("ingest", "mongo-init") == driver
