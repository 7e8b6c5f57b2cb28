"""Hosts as processes: each a member of the database, an ingest service with a spool, a gateway.

A host is lost under load, with detections in its spool or with its disk, and comes back; another
one is added, with a shard. Phones go from one host to the next, as to the addresses of one name.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from common.schema import DATABASE
from mongo import clients, topology
from mongo.replica_set import primary_of
from mongo.topology import ReplicaSet, Topology
from scripts.processes import ROOT
from scripts.processes.cluster import DIRECTORY, Cluster
from scripts.processes.health import mongodb_problem
from scripts.processes.service import IngestService
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.needs import need_routers
from tests.phones import Phones, through
from tests.test_docs import section

pytestmark = pytest.mark.long

NAMES = ("host1", "host2", "host3")
SET = Topology(ReplicaSet("hosts", tuple(f"{name}:27017" for name in NAMES)), None, (), ())
# Each set has one member here: they are emulated, and three of each would be nine.
SHARDED = (("configsvr", "mongos-1"), ("shard1", "mongos-2"), ("shard2",))
GROWING, DATABASE_ELSEWHERE = "docs/growing.md", "3. A database elsewhere"
AWAY_SECONDS = 60
EMULATED_SECONDS = 400
EMULATED_REST_SECONDS = 0.5  # more than that fills the spools where other work goes on
PATIENCE_SECONDS = 5  # of a phone and of a reader, before they try the next host
STALL_SECONDS = 14  # the election takes 3 s, what follows its time
REST_SECONDS = 0.05  # of each phone: all are one client address, which has 200 requests/s


class Host:
    """What one host has; `members` are its servers of the database."""

    def __init__(self, cluster: Cluster, members: Sequence[str], folder: Path, router: int) -> None:
        folder.mkdir()
        self.members = members
        self._cluster = cluster
        self._run = folder / "run"
        self._run.mkdir()
        self.spools = folder / "spools"
        self.spools.mkdir()
        self.service = IngestService(cluster.uri(router), self.spools)
        self.gateway: Gateway | None = None

    def start(self, services: list[IngestService]) -> None:
        """Start everything; the gateway knows all services."""
        self._cluster.start(*self.members)
        self.service.start("/healthz")
        addresses = " ".join(f"127.0.0.1:{service.port}" for service in services)
        if self.gateway is None:
            self.gateway = Gateway(self._run, ingest=addresses)
            self.gateway.answer_open()
        self.gateway.start()

    @property
    def url(self) -> str:
        """Where phones reach it."""
        assert self.gateway
        return self.gateway.url

    def lose(self) -> None:
        """End everything on it at once; the disk stays.

        The gateway is the first: else a detection can be acknowledged, as it is in the spool,
        while the member ends; whose disk is lost has that no more.
        """
        assert self.gateway
        self.gateway.process.kill()
        self.service.kill()
        for member in self.members:
            self._cluster.kill(member)

    def silence(self) -> None:
        """Have it answer nothing any more, with all connections open: as behind a cut network."""
        assert self.gateway
        members = [self._cluster.process(member) for member in self.members]
        for process in (self.gateway.process, self.service, *members):
            os.killpg(process.pid, signal.SIGSTOP)

    def lose_disk(self) -> None:
        """Delete all that it had."""
        for member in self.members:
            shutil.rmtree(self._cluster.folder / member)
        for folder in (self.spools, self._run):
            shutil.rmtree(folder)
            folder.mkdir()

    def queued(self) -> int:
        """Return how many detections wait in its spool, as its service tells."""
        answer = requests.get(f"{self.service.url}/readyz", timeout=5)
        return int(answer.json()["queued"])

    def close(self) -> None:
        """End the gateway and the service; the database is the cluster's."""
        self.service.stop()
        if self.gateway:
            self.gateway.close()


class Reader:
    """Reads a history again and again while in the context, from the next host when one fails."""

    def __init__(self, staff_id: int, *urls: str) -> None:
        self._urls = [f"{url}/api/v1/staff/{staff_id}/detections?limit=1" for url in urls]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.longest_seconds = 0.0  # from one good answer to the next
        self.good = 0

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        last, tries = time.monotonic(), 0
        while not self._stopped.wait(REST_SECONDS):
            try:
                answer = requests.get(self._urls[tries % len(self._urls)], timeout=PATIENCE_SECONDS)
                is_good = answer.status_code == 200 and bool(answer.json()["data"])
            except requests.RequestException:
                is_good = False
            if is_good:
                now = time.monotonic()
                self.longest_seconds = max(self.longest_seconds, now - last)
                self.good += 1
                last = now
            else:
                tries += 1


@contextmanager
def started(
    cluster: Cluster, folder: Path, members: Sequence[Sequence[str]]
) -> Iterator[list[Host]]:
    """Run a host for each group of servers, which run already; ends those that are added, too."""
    folder.mkdir()
    hosts = [
        Host(cluster, of_one, folder / str(number), number) for number, of_one in enumerate(members)
    ]
    try:
        for host in hosts:
            host.start([host.service for host in hosts])
        yield hosts
    finally:
        for host in hosts:
            host.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(SET, tmp_path_factory.mktemp("db")).running(DIRECTORY) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def hosts(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Host]]:
    folder = tmp_path_factory.mktemp("h") / "hosts"
    with started(cluster, folder, [[name] for name in NAMES]) as hosts:
        yield hosts


def with_the_primary(cluster: Cluster, hosts: list[Host]) -> Host:
    """Return the host whose loss costs the most."""
    primary = eventually(lambda: primary_of(cluster.local.users_set), AWAY_SECONDS)
    return hosts[cluster.local.users_set.members.index(primary)]


def stored(cluster: Cluster) -> int:
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        return client[DATABASE]["staff"].count_documents({})


def all_are_well(cluster: Cluster) -> bool:
    return not any(mongodb_problem(server.port) for server in cluster.servers().values())


def test_a_host_that_is_lost_with_a_full_spool_loses_nothing(
    cluster: Cluster, hosts: list[Host]
) -> None:
    lost = with_the_primary(cluster, hosts)
    others = [host for host in hosts if host is not lost]
    before = stored(cluster)
    phones = Phones(
        through(*(host.url for host in hosts)), list(range(12)), rest_seconds=REST_SECONDS
    )
    with phones:
        phones.wait_for(200, 100)
        for name in NAMES:
            cluster.send_signal(name, signal.SIGSTOP)
        eventually(lambda: all(host.queued() > 5 for host in hosts), AWAY_SECONDS)
        lost.lose()
        phones.wait_for(202, 50, AWAY_SECONDS)
        for host in others:
            cluster.send_signal(host.members[0], signal.SIGCONT)
        phones.wait_for(200, 200, AWAY_SECONDS)  # by the two others
        eventually(lambda: not any(host.queued() for host in others), AWAY_SECONDS)
    assert set(phones.answers) <= {0, 200, 202, 503}
    # Nobody reaches its disk: what waits there waits.
    missing = len(phones.confirmed) + before - stored(cluster)
    assert missing > 0
    lost.start([host.service for host in hosts])
    eventually(lambda: stored(cluster) - before == len(phones.confirmed), AWAY_SECONDS)
    eventually(lambda: lost.queued() == 0, AWAY_SECONDS)
    assert stored(cluster) - before == len(phones.confirmed)  # each once
    eventually(lambda: all_are_well(cluster), AWAY_SECONDS)


@pytest.mark.parametrize("fault", ["killed", "silent"])
def test_a_host_that_comes_back_empty_takes_part_again(
    cluster: Cluster, hosts: list[Host], fault: str
) -> None:
    lost = with_the_primary(cluster, hosts)
    before = stored(cluster)
    addresses = [host.url for host in hosts]
    sender = through(*addresses, timeout_seconds=PATIENCE_SECONDS)
    with Phones(sender, list(range(8)), rest_seconds=REST_SECONDS) as phones:
        phones.wait_for(200, 100)
        with Reader(0, *addresses) as reader:
            eventually(lambda: reader.good > 10 and lost.queued() == 0, AWAY_SECONDS)
            if fault == "killed":
                lost.lose()
            else:
                lost.silence()
            phones.wait_for(200, 50, AWAY_SECONDS)
            good = reader.good
            eventually(lambda: reader.good > good + 20, AWAY_SECONDS)
            print(f"\nlongest wait: phones {phones.longest_seconds:.1f} s, ", end="")
            print(f"readers {reader.longest_seconds:.1f} s")
            # It may begin while one waits at the host that is silent.
            longest = max(phones.longest_seconds, reader.longest_seconds)
            assert longest < STALL_SECONDS + PATIENCE_SECONDS
            if fault == "silent":
                lost.lose()
            lost.lose_disk()
            lost.start([host.service for host in hosts])
            unanswered = phones.answers[0]
            phones.wait_for(200, 200, AWAY_SECONDS)
            assert phones.answers[0] - unanswered <= 8  # what was under way
            eventually(lambda: all_are_well(cluster), AWAY_SECONDS)
    eventually(lambda: not any(host.queued() for host in hosts), AWAY_SECONDS)
    assert stored(cluster) - before == len(phones.confirmed)
    (member,) = (server for server in cluster.servers().values() if server.name in lost.members)
    everything = stored(cluster)
    with clients.as_system(f"127.0.0.1:{member.port}", cluster.secrets) as alone:
        there = alone[DATABASE]["staff"]
        eventually(lambda: there.count_documents({}) == everything, AWAY_SECONDS)


def test_a_fourth_host_brings_a_third_shard_while_detections_come_in(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    need_routers()
    folder = tmp_path_factory.mktemp("s")
    grown = folder / "grown.toml"
    second = 'shard2 = ["shard2:27018"]\n'
    third = f'{second}shard3 = ["shard3:27018"]\n'
    grown.write_text(topology.SHARDED.read_text().replace(second, third))
    with (
        Cluster(topology.load(topology.SHARDED), folder / "db").running(DIRECTORY) as cluster,
        started(cluster, folder / "hosts", SHARDED) as hosts,
    ):
        urls = [host.url for host in hosts]
        with Phones(through(*urls), list(range(6)), rest_seconds=EMULATED_REST_SECONDS) as phones:
            phones.wait_for(200, 50, EMULATED_SECONDS)
            cluster.topology = topology.load(grown)
            fourth = Host(cluster, ["shard3"], folder / "fourth", len(hosts))
            hosts.append(fourth)
            fourth.start([host.service for host in hosts])
            said = add_the_shard(cluster, grown)
            assert "shard shard3: added" in said
            assert "staff: 33.3% still to move" in said
            newcomers = Phones(
                through(fourth.url), list(range(6, 12)), rest_seconds=EMULATED_REST_SECONDS
            )
            with newcomers:
                eventually(lambda: len(newcomers.confirmed) > 50, EMULATED_SECONDS)
        eventually(lambda: not any(host.queued() for host in hosts), EMULATED_SECONDS)
        for some in (phones, newcomers):
            assert set(some.answers) <= {200, 202, 503}
        confirmed = phones.acknowledged + newcomers.acknowledged
        with MongoClient[dict[str, Any]](cluster.uri()) as client:
            rows = client[DATABASE]["staff"].aggregate([{"$sortByCount": "$staff_id"}])
            assert {row["_id"]: row["count"] for row in rows} == confirmed
        (member,) = cluster.local.shards[2].members
        with clients.as_system(member, cluster.secrets) as alone:
            theirs = alone[DATABASE]["staff"].distinct("staff_id")
        assert 0 < len(theirs) < len(confirmed)


def add_the_shard(cluster: Cluster, file: Path) -> str:
    """Type what the document has for it; return what that says."""
    text = section(GROWING, DATABASE_ELSEWHERE)
    [command] = re.findall(r"^\S+ -m mongo\.bootstrap .*--wait$", text, re.MULTILINE)
    for written, here in {
        ".venv/bin/python": sys.executable,
        "hosts.toml": str(file),
        "SECRETS": str(cluster.folder / "secrets"),
    }.items():
        assert written in command
        command = command.replace(written, here)
    # Every server is on this machine, and emulated.
    command += f" --local-port {cluster.first_port} --deadline {EMULATED_SECONDS}"
    return subprocess.run(
        shlex.split(command), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
