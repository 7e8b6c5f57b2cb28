"""Three hosts by docs/growing.md: the services in a swarm, beside a database of one member on each.

Its commands are typed as they stand there. A host is an engine in namespaces of its own (hosts.py).
The overlay network is not encrypted here: kernels of test machines lack what that needs.
"""

import hashlib
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from common.schema import DATABASE
from mongo.binaries import find_binaries
from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.docker.conftest import Stack
from tests.docker.engine import Docker
from tests.docker.hosts import Host, address, network
from tests.docker.images import images
from tests.phones import Phones, Post, through
from tests.test_docs import section

GROWING, SECTION = "docs/growing.md", "4. The rest on three hosts"
IMAGES = "waymark-tests"
PARTS = {"gateway": "gateway", "ingest": "ingest-1", "monitoring": "monitoring"}
PASSWORD = "of-the-database"
READY_SECONDS = 300.0
PATIENCE_SECONDS = 5.0
REST_SECONDS = 0.05


class Swarm:
    """The hosts, and what an operator does with them."""

    def __init__(self, folder: Path, docker: Docker, made: Path) -> None:
        self.folder = folder
        self._images = made
        self._environment = docker.environment
        self.hosts: list[Host] = []
        self.settings: dict[str, str] = {}
        self.admin = f"wm_{secrets.token_urlsafe(32)}"
        self.certificate = folder / "tls" / "certificate.pem"
        self._keyfile = folder / "keyfile"

    # The database

    def prepare_certificates(self, addresses: list[str]) -> None:
        script = [str(ROOT / "scripts/certificate"), str(self.certificate.parent), *addresses]
        subprocess.run(script, check=True, capture_output=True)
        key = self.certificate.with_name("key.pem").read_bytes()
        self.both = self.folder / "both.pem"
        self.both.write_bytes(self.certificate.read_bytes() + key)
        self._keyfile.write_text(secrets.token_hex(32))
        self._keyfile.chmod(0o600)

    def start_member(self, host: Host) -> None:
        """Start the host's member of the database."""
        path = host.data / "mongod"
        path.mkdir(exist_ok=True)
        host.run(
            "mongod",
            *(str(find_binaries() / "mongod"), "--replSet", "waymark", "--dbpath", str(path)),
            *("--bind_ip", host.address, "--port", "27017", "--wiredTigerCacheSizeGB", "0.25"),
            *("--keyFile", str(self._keyfile), "--tlsMode", "requireTLS"),
            *("--tlsCertificateKeyFile", str(self.both), "--tlsCAFile", str(self.certificate)),
            "--tlsAllowConnectionsWithoutCertificates",
        )

    def uri(self, login: str = "") -> str:
        members = ",".join(f"{host.address}:27017" for host in self.hosts[:3])
        return f"mongodb://{login}{members}/?tls=true&tlsCAFile={{}}&authSource=admin"

    def make_database(self) -> None:
        """Do what whoever runs the database does before anybody gets a URI."""
        with self.as_member() as client:
            members = [
                {"_id": number, "host": f"{host.address}:27017"}
                for number, host in enumerate(self.hosts)
            ]
            settings = {"electionTimeoutMillis": 3000}
            config = {"_id": "waymark", "members": members, "settings": settings}
            client.admin.command("replSetInitiate", config)
            eventually(lambda: client.admin.command("hello")["isWritablePrimary"], READY_SECONDS)
            add = partial(client.admin.command, "createUser", pwd=PASSWORD)
            add("waymark", roles=[{"role": "readWrite", "db": DATABASE}])
            roles = [{"role": role, "db": DATABASE} for role in ("readWrite", "dbAdmin")]
            add("operator", roles=roles)

    def as_member(self) -> MongoClient[dict[str, Any]]:
        return MongoClient(
            f"mongodb://{self.hosts[0].address}:27017/?tls=true&tlsCAFile={self.certificate}",
            username="__system",
            password=self._keyfile.read_text(),
            authSource="local",
            authMechanism="SCRAM-SHA-256",
            directConnection=True,
        )

    def stored(self) -> Counter[str]:
        """Return how many detections of each person there are."""
        uri = self.uri(f"operator:{PASSWORD}@").format(self.certificate)
        with MongoClient[dict[str, Any]](uri) as client:
            rows = client[DATABASE]["staff"].aggregate([{"$sortByCount": "$staff_id"}])
            return Counter({str(row["_id"]): row["count"] for row in rows})

    # The swarm

    def add_host(self) -> Host:
        """Start a machine that has the images."""
        host = Host(len(self.hosts) + 1, self.folder, self._environment)
        self.hosts.append(host)
        self.start(host)
        return host

    def start(self, host: Host) -> None:
        host.start()
        host.docker("load", "--input", str(self._images))

    def typed(self, beginning: str, host: Host, **here: str) -> str:
        """Run the document's command that begins so, with what is another here."""
        block = section(GROWING, SECTION)
        [line] = [line for line in block.splitlines() if line.strip().startswith(beginning)]
        for written, instead in here.items():
            assert written in line
            line = line.replace(written, instead)
        return subprocess.run(
            ["bash", "-euc", line],
            cwd=ROOT,
            env=host.docker.environment | self.settings,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    def leader(self) -> Host:
        """Return the host on which an operator may type."""
        for host in self.hosts:
            done = host.docker.run("node", "ls", "--format", "{{.Hostname}} {{.ManagerStatus}}")
            for row in done.stdout.splitlines() if done.returncode == 0 else ():
                name, *status = row.split()
                if status == ["Leader"]:
                    return next(other for other in self.hosts if other.name == name)
        raise AssertionError("the swarm has no leader")

    def join(self, host: Host) -> None:
        """Let a host take part, as the first one says."""
        first = self.leader()
        said = self.typed("docker swarm join-token manager", first)
        (command,) = re.findall(r"docker swarm join --token \S+ \S+", said)
        subprocess.run(
            [*command.split(), "--advertise-addr", host.address],
            env=host.docker.environment,
            check=True,
            capture_output=True,
        )
        self.typed("docker node update", first, NODE=host.name)

    def deploy(self, release: str) -> None:
        self.settings = self.settings | {"WAYMARK_RELEASE": release}
        file = "deploy/swarm/docker-compose.yml"
        here = {file: str(self._file()), "stack deploy": "stack deploy --resolve-image never"}
        self.typed("docker stack deploy", self.leader(), **here)

    def _file(self) -> Path:
        """Return the shipped file, but for the network's encryption and the pace of checks."""
        stack = yaml.safe_load((ROOT / "deploy/swarm/docker-compose.yml").read_text())
        del stack["networks"]["front"]["driver_opts"]
        for service in stack["services"].values():
            service["healthcheck"] = {"interval": "3s", "test": ["CMD", "alive"]}
        file = self.folder / "stack.yml"
        file.write_text(yaml.safe_dump(stack))
        return file

    def tasks(self) -> dict[str, list[tuple[str, str]]]:
        """Return host and image of each running container, by its service."""
        wanted = ("--filter", "desired-state=running", "--no-trunc")
        shown = ("--format", "{{.Name}}|{{.Node}}|{{.Image}}|{{.CurrentState}}")
        told = self.leader().docker("stack", "ps", "waymark", *wanted, *shown)
        running: dict[str, list[tuple[str, str]]] = {part: [] for part in PARTS}
        for name, node, image, state in (row.split("|") for row in told.splitlines()):
            if state.startswith("Running"):
                part = name.removeprefix("waymark_").partition(".")[0]
                running[part].append((node, image))
        return running

    def is_complete(self, release: str) -> bool:
        """Tell whether each host has all its parts, of this release."""
        names = sorted(host.name for host in self.hosts)
        with suppress(AssertionError):  # no leader yet
            tasks = self.tasks()
            for part in ("gateway", "ingest"):
                image = f"{IMAGES}/{part}:{release}"
                if sorted(tasks[part]) != [(name, image) for name in names]:
                    return False
            return len(tasks["monitoring"]) == 2
        return False

    # Its clients

    def session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.certificate)
        session.headers["Authorization"] = f"Bearer {self.admin}"
        return session

    def sender(self, *hosts: Host) -> Callable[[], Post]:
        """Return what makes phones that take the next host when one does not answer."""
        urls = [f"https://{host.address}" for host in hosts]
        return through(*urls, timeout_seconds=PATIENCE_SECONDS, make_session=self.session)

    def status(self, host: Host, path: str) -> int:
        try:
            url = f"https://{host.address}{path}"
            return self.session().get(url, timeout=PATIENCE_SECONDS).status_code
        except requests.RequestException:
            return 0

    def queued(self) -> int | None:
        """Return how many detections wait in spools, None while that cannot be told."""
        session = self.session()
        for host in self.hosts:
            with suppress(requests.RequestException, ValueError, KeyError):
                url = f"https://{host.address}/monitoring/api/system"
                services = session.get(url, timeout=PATIENCE_SECONDS).json()["services"]
                known = {service["name"]: service for service in services if service["answers"]}
                if known.keys() >= {f"ingest-{host.name}" for host in self.hosts}:
                    return sum(int(service["queued"]) for service in known.values())
        return None


class Reader(threading.Thread):
    """Reads who is where, at each host in turn, and counts the answers."""

    def __init__(self, swarm: Swarm) -> None:
        super().__init__(daemon=True)
        self._swarm = swarm
        self._end = threading.Event()
        self.statuses: Counter[int] = Counter()

    def run(self) -> None:
        turn = 0
        while not self._end.wait(REST_SECONDS):
            host = self._swarm.hosts[turn % len(self._swarm.hosts)]
            self.statuses[self._swarm.status(host, "/api/v1/now")] += 1
            turn += 1

    def stop(self) -> None:
        self._end.set()
        self.join(2 * PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def made(docker: Docker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the images of two releases, as a registry would have them."""
    stack = Stack(docker, images(docker))
    stack.compose("build", *PARTS.values())
    names = []
    for part in PARTS:
        for release in ("1", "2"):
            name = f"{IMAGES}/{part}:{release}"
            container = docker("create", f"waymark/{part}:latest")
            try:
                docker("commit", "--change", f"LABEL release={release}", container, name)
            finally:
                docker("rm", "--volumes", container)
            names.append(name)
    file = tmp_path_factory.mktemp("images") / "images.tar"
    docker("save", "--output", str(file), *names)
    docker("image", "rm", *names)
    return file


@pytest.fixture(scope="module")
def swarm(docker: Docker, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swarm]:
    swarm = Swarm(tmp_path_factory.mktemp("w"), docker, made)
    with ExitStack() as stack:
        stack.enter_context(network())
        for _ in range(3):
            stack.callback(swarm.add_host().close)
        set_up(swarm)
        yield swarm


def set_up(swarm: Swarm) -> None:
    """Go by the document: the database, the secrets, the swarm, the stack."""
    first = swarm.hosts[0]
    # The certificate is for a fourth host, too: one more would want another one.
    swarm.prepare_certificates([address(number) for number in range(1, 5)])
    for host in swarm.hosts:
        swarm.start_member(host)
    eventually(lambda: answers(swarm), READY_SECONDS)
    swarm.make_database()
    folder = swarm.folder / "secrets"
    folder.mkdir()
    (folder / "session_key").write_text(secrets.token_hex(32))
    (folder / "page_token").write_text(secrets.token_hex(32))
    (folder / "mongodb_password").write_text(PASSWORD)
    operator = swarm.uri(f"operator:{PASSWORD}@").format(swarm.certificate)
    prepare = [sys.executable, "-m", "mongo.outside", "--directory", "mongo/directory.csv"]
    environment = first.docker.environment | {"MONGODB_URI": operator}
    subprocess.run(prepare, cwd=ROOT, env=environment, check=True, capture_output=True)
    swarm.settings = {
        "WAYMARK_IMAGES": IMAGES,
        "WAYMARK_ADMIN_TOKEN_SHA256": hashlib.sha256(swarm.admin.encode()).hexdigest(),
        "WAYMARK_HOSTNAMES": " ".join(address(number) for number in range(1, 5)),
        "PUBLIC_URL": "https://waymark.example",
        "MONGODB_USER": "waymark",
        "MONGODB_URI": swarm.uri().format("/run/database_authority.pem"),
    }
    swarm.typed(
        "docker swarm init", first, **{"swarm init": f"swarm init --advertise-addr {first.address}"}
    )
    swarm.typed("docker node update", first, NODE=first.name)
    for host in swarm.hosts[1:]:
        swarm.join(host)
    key = swarm.certificate.with_name("key.pem")
    swarm.typed("docker config create", first, **{"ca.pem": str(swarm.certificate)})
    swarm.typed(
        "docker secret create certificate ", first, **{"fullchain.pem": str(swarm.certificate)}
    )
    swarm.typed("docker secret create certificate_key", first, **{"privkey.pem": str(key)})
    names = '"$name" "$name"'
    swarm.typed("for name in", first, **{names: f'"$name" {folder}/"$name"'})
    swarm.deploy("1")
    eventually(lambda: swarm.is_complete("1"), READY_SECONDS)


def answers(swarm: Swarm) -> bool:
    with suppress(PyMongoError), swarm.as_member() as client:
        return bool(client.admin.command("ping"))
    return False


def all_is_well(swarm: Swarm, hosts: Sequence[Host] = ()) -> bool:
    return all(swarm.status(host, "/api/v1/now") == 200 for host in hosts or swarm.hosts)


def test_phones_and_readers_may_take_any_host(swarm: Swarm) -> None:
    eventually(lambda: all_is_well(swarm), READY_SECONDS)
    before = swarm.stored()
    with Phones(swarm.sender(*swarm.hosts), list(range(6)), rest_seconds=REST_SECONDS) as phones:
        phones.wait_for(200, 200, READY_SECONDS)
    assert set(phones.answers) == {200}
    assert swarm.stored() - before == {str(key): n for key, n in phones.acknowledged.items()}
    eventually(lambda: swarm.queued() == 0, READY_SECONDS)  # by the names of all three services


def test_an_update_of_every_part_fails_no_request_that_takes_the_next_host(swarm: Swarm) -> None:
    eventually(lambda: all_is_well(swarm), READY_SECONDS)
    before = swarm.stored()
    reader = Reader(swarm)
    reader.start()
    with Phones(swarm.sender(*swarm.hosts), list(range(6)), rest_seconds=REST_SECONDS) as phones:
        phones.wait_for(200, 50, READY_SECONDS)
        began = time.monotonic()
        swarm.deploy("2")
        eventually(lambda: swarm.is_complete("2"), READY_SECONDS)
        took = time.monotonic() - began
        eventually(lambda: all_is_well(swarm), READY_SECONDS)
    reader.stop()
    print(f"\n{took:.0f} s; detections {dict(phones.answers)}, reads {dict(reader.statuses)}")
    # 0: a host whose gateway is made anew refuses connections.
    assert set(phones.answers) <= {0, 200, 202}
    assert set(reader.statuses) <= {0, 200}
    eventually(lambda: swarm.queued() == 0, READY_SECONDS)
    assert swarm.stored() - before == {str(key): n for key, n in phones.acknowledged.items()}


def test_a_host_that_is_lost_and_comes_back_empty(swarm: Swarm) -> None:
    eventually(lambda: swarm.queued() == 0 and all_is_well(swarm), READY_SECONDS)
    before = swarm.stored()
    lost = swarm.leader()
    others = [host for host in swarm.hosts if host is not lost]
    with Phones(swarm.sender(*swarm.hosts), list(range(6)), rest_seconds=REST_SECONDS) as phones:
        phones.wait_for(200, 100, READY_SECONDS)
        lost.lose()
        phones.wait_for(200, 100, READY_SECONDS)
        eventually(lambda: all_is_well(swarm, others), READY_SECONDS)
        print(f"\nthe longest wait of a phone: {phones.longest_seconds:.1f} s")
        lost.lose_disk()
        swarm.start(lost)
        swarm.start_member(lost)
        eventually(lambda: swarm.leader() is not lost, READY_SECONDS)
        swarm.typed("docker node demote", swarm.leader(), NODE=lost.name)
        swarm.join(lost)
        eventually(lambda: swarm.is_complete("2"), READY_SECONDS)
        eventually(lambda: all_is_well(swarm), READY_SECONDS)
    assert set(phones.answers) <= {0, 200, 202, 503}
    eventually(lambda: swarm.queued() == 0, READY_SECONDS)
    assert swarm.stored() - before == {str(key): n for key, n in phones.acknowledged.items()}


def test_a_host_more_takes_part(swarm: Swarm) -> None:
    fourth = swarm.add_host()
    try:
        swarm.join(fourth)
        eventually(lambda: swarm.is_complete("2"), READY_SECONDS)
        eventually(lambda: all_is_well(swarm), READY_SECONDS)
        before = swarm.stored()
        with Phones(swarm.sender(fourth), list(range(6)), rest_seconds=REST_SECONDS) as phones:
            phones.wait_for(200, 100, READY_SECONDS)
        assert swarm.stored() - before == {str(key): n for key, n in phones.acknowledged.items()}
        eventually(lambda: swarm.queued() == 0, READY_SECONDS)
    finally:
        fourth.close()
        swarm.hosts.remove(fourth)
