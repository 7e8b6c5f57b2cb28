"""The old architecture is what it is compared as, and the command line reaches each form of it."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from common.schema import STAFF
from ingest.storage.detections.stamps import STAMP
from loadtests.architectures import (
    ARCHITECTURES,
    COMBINED,
    DURABLE,
    INDEXED,
    OLD,
    OLD_GATEWAY,
    OLD_SERVICES,
    PARTS,
    SEPARATED,
    UNOPTIMISED,
    sharded,
)
from loadtests.engine import endpoints
from loadtests.engine.client import Api
from loadtests.engine.generator import generate
from loadtests.shards import shard_of
from loadtests.stack import Stack
from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.needs import need_routers
from tests.tools.loadtests.measured import measured

pytestmark = pytest.mark.long

Seen = dict[str, Any]


def passed(
    url: str, plan: str, options: dict[str, object], capfd: pytest.CaptureFixture[str]
) -> bool:
    return not measured(lambda by: generate(url, plan, options | {"shift": by}), capfd)[0]


def profiled(name: str, plan: str, step: str, capfd: pytest.CaptureFixture[str]) -> list[Seen]:
    """Run a step of a plan; return mongod's commands, as its profiler noted them."""
    with (
        ARCHITECTURES[name](limited=False) as stack,
        MongoClient[Seen](f"mongodb://127.0.0.1:{stack.mongod_port}/") as client,
    ):
        database = client["ICT3102"]
        database.command("profile", 2)
        assert passed(stack.url, plan, {"ramp": 0.3, "pages": 0, "only": step}, capfd)
        return [row["command"] for row in database["system.profile"].find({"ns": "ICT3102.staff"})]


@pytest.mark.parametrize(("name", "ranged"), [("old", True), (UNOPTIMISED, False)])
def test_the_query(name: str, capfd: pytest.CaptureFixture[str], *, ranged: bool) -> None:
    seen = profiled(name, "PERF-RT-2", "600", capfd)
    finds = [command for command in seen if "find" in command]
    assert finds
    for command in finds:
        assert ("timestamp" in command["filter"]) == ranged
        assert ("projection" in command) == ranged
        assert command["sort"] == {"timestamp": -1}


@pytest.mark.parametrize(("name", "plan"), [("old", "COLLSCAN"), (INDEXED, "IXSCAN")])
def test_the_index_is_all_that_differs(
    name: str, plan: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        ARCHITECTURES[name](limited=False) as stack,
        MongoClient[Seen](f"mongodb://127.0.0.1:{stack.mongod_port}/") as client,
    ):
        database = client["ICT3102"]
        database.command("profile", 2)
        options = {"ramp": 0.3, "pages": 0, "only": "600"}
        assert passed(stack.url, "PERF-RT-2", options, capfd)
        wanted = {"ns": "ICT3102.staff", "command.find": "staff", "command.filter.staff_id": 0}
        plans = {row["planSummary"].split()[0] for row in database["system.profile"].find(wanted)}
        indexes = client["ICT3102"]["staff"].index_information()
    assert plans - {"EOF"} == {plan}  # EOF: before there is anything
    theirs = [index.keys for index in STAFF.indexes]
    every = [dict(one["key"]) for key, one in indexes.items() if key != "_id_"]
    assert [dict(index) in [dict(key) for key in theirs] for index in every] == [True] * (
        name != "old"
    )


@pytest.mark.parametrize(("name", "on_disk"), [("old", False), (DURABLE, True)])
def test_what_an_insert_waits_for(
    name: str, capfd: pytest.CaptureFixture[str], *, on_disk: bool
) -> None:
    seen = profiled(name, "PERF-TP-1", "210", capfd)
    inserts = [command for command in seen if "insert" in command]
    assert inserts
    assert {command.get("writeConcern", {}).get("j", False) for command in inserts} == {on_disk}


@pytest.mark.parametrize(("how", "begins"), [("", b'{"l'), ("--indented", b'{\n  "l')])
def test_the_old_one_stands_for_other_tools(how: str, begins: bytes, tmp_path: Path) -> None:
    port = free_port()
    arguments = ["stand", "--old", "--no-limits", "--port", str(port), *how.split()]
    command = [sys.executable, "-m", "loadtests.main", *arguments]
    seen = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=seen
    ) as process:
        assert process.stdout
        try:
            assert next(line for line in process.stdout if "is its page" in line)
            url = f"http://127.0.0.1:{port}"
            assert b"<title>Monitoring" in requests.get(url, timeout=30).content
            answer = requests.get(url + endpoints.extract(1), timeout=30)
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert answer.content.startswith(begins)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "parts"), [(COMBINED, 1), (SEPARATED, 2)])
def test_only_the_separation_differs(name: str, parts: int) -> None:
    with ARCHITECTURES[name](limited=False) as stack:
        assert len(stack.ingest_ports) == 1
        services = [name for name in PARTS if name not in ("gateway", "mongod")]
        assert len(running(stack, services)) == parts
        api = Api(stack.url)
        pages = ("/", "/monitoring", "/retrieveformonitoring")
        for path in (*pages, endpoints.insert_now(1)):
            assert api.send(path).status == 200
        # Who answers: the page and its data the one, the detections the other.
        os.kill(stack.pid("monitoring" if parts == 2 else "ingest-1"), signal.SIGTERM)
        eventually(lambda: [api.send(path).status for path in pages] == [502, 502, 502])
        assert api.send(endpoints.insert_now(1)).status == (200 if parts == 2 else 502)
        api.close()


@pytest.mark.parametrize(("name", "other"), [(OLD_GATEWAY, "gateway"), (OLD_SERVICES, "services")])
def test_only_one_part_is_the_old_one(
    name: str, other: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with ARCHITECTURES[name](limited=False) as stack:
        assert passed(stack.url, "PERF-RT-2", {"ramp": 0.3, "only": "600"}, capfd)
        circuit = requests.get(f"{stack.url}/_circuit/reads", timeout=30)
        assert circuit.ok == (other != "gateway")
        people = requests.get(f"{stack.url}/api/v1/staff", timeout=30)
        assert people.ok == (other != "services")
        with MongoClient[Seen](stack.mongodb_uri) as client:  # the new one's database
            assert client.admin.command("hello")["setName"]
            # Which the new application stamps.
            stamped = client["ICT3102"]["staff"].count_documents({STAMP: {"$exists": True}})
        assert (stamped > 0) == (other != "services")


def running(stack: Stack, names: list[str]) -> list[str]:
    alive = []
    for name in names:
        with contextlib.suppress(KeyError):
            stack.pid(name)
            alive.append(name)
    return alive


def test_the_old_one_with_shards_has_but_the_index_of_their_key(
    capfd: pytest.CaptureFixture[str],
) -> None:
    need_routers()
    with ARCHITECTURES[sharded(OLD, 2)](limited=False) as stack:
        options = {"ramp": 1.0, "slower": 10.0, "pages": 0, "hacs": "7"}
        assert generate(stack.url, "PERF-RT-1-1", options) in (0, 1)  # void on a busy machine
        assert "exactly the 25 acknowledged detections" in capfd.readouterr().out
        with MongoClient[Seen](stack.mongodb_uri) as client:
            staff = client["ICT3102"]["staff"]
            assert sorted(staff.index_information()) == ["_id_", "staff_id_hashed"]
            spread = {
                stats["shard"]: stats["count"]
                for stats in staff.aggregate([{"$collStats": {"count": {}}}])
            }
            assert client.admin.command("hello")["msg"] == "isdbgrid"
    sent = {0: 4, 1: 4, 2: 5, 3: 6, 4: 6}
    on_shard = [0, 0]
    for person, count in sent.items():
        on_shard[shard_of(person, 2)] += count
    assert sorted(spread.values()) == sorted(on_shard)  # either may have the lower hashes
