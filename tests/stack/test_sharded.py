"""A whole stack on a sharded cluster, started by one command."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mongo import topology
from scripts.processes.waiting import eventually
from tests.needs import need_routers
from tests.phones import Phones, through
from tests.stack.conftest import Stack, kill_tree, running_stack, started
from tests.stack.test_backup import back_up, restore_into
from tests.stack.test_start import has_no_time
from tests.stack.test_verdict import HEALTHY, frozen, seen_until

pytestmark = pytest.mark.long

PARTS = {"configsvr", "shard1", "shard2", "mongos-1", "mongos-2"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that names the servers, which a test adds to."""
    file = tmp_path_factory.mktemp("servers") / "topology.toml"
    return Path(shutil.copy(topology.SHARDED, file))


@pytest.fixture(scope="module")
def stopped(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """Return a stack of its own, not started yet: these tests break it."""
    need_routers()
    return Stack(root, tmp_path_factory.mktemp("sharded") / "data")


@pytest.fixture(scope="module")
def stack(stopped: Stack, servers: Path) -> Iterator[Stack]:
    """Return it running."""
    with started(stopped, "--sharded", str(servers)) as stack:
        yield stack


def store(stack: Stack, staff_id: int, event_id: str) -> bool:
    """Send a detection, which is stored once however often it is sent; tell whether it is."""
    answer = stack.detect(staff_id, event_id=event_id)
    return (answer.status_code, answer.text) == (200, "New Beacon Detection Added")


def test_a_start_without_enough_time_says_how_to_go_on(stopped: Stack, servers: Path) -> None:
    """That it goes on, all the other tests show."""
    has_no_time(stopped, "--sharded", servers)


def test_the_contract_holds(stack: Stack) -> None:
    assert set(stack.pids()) > PARTS
    for staff_id in range(20):
        eventually(partial(store, stack, staff_id, "first"), 120)
    for staff_id in range(20):
        assert len(stack.history(staff_id)) == 1
    heard = stack.read("/retrieveformonitoring").json()["location"]
    assert {row["staff_id"] for row in heard} == set(range(20))
    # The screen "System" shows how many lie on each shard.
    shards = stack.read("/api/v1/system/database").json()["shards"]
    assert {shard["name"] for shard in shards} == {"shard1", "shard2"}
    assert sum(shard["documents"] for shard in shards) == 20


@pytest.mark.parametrize("name", ["mongos-1", "shard1", "configsvr"])
def test_a_killed_part_comes_back_with_everything(stack: Stack, name: str) -> None:
    before = {staff_id: len(stack.history(staff_id)) for staff_id in range(20)}
    kill_tree(stack.pids()[name])
    eventually(lambda: stack.script("status").returncode == 0, 120)
    for staff_id, count in before.items():
        eventually(partial(store, stack, staff_id, name), 120)
        assert len(stack.history(staff_id)) == count + 1


def test_a_frozen_router_is_told_though_the_other_service_answers_everybody(stack: Stack) -> None:
    seen_until(stack, HEALTHY, 300)
    with Phones(through(stack.url), [*range(14)], rest_seconds=0.2), frozen(stack, "mongos-2"):
        seen_until(stack, "ingest-2 does not reach the database", 300)
    seen_until(stack, HEALTHY, 300)  # emulated routers, perhaps beside another emulated stack


def test_its_backup_is_restored_without_shards(
    stack: Stack, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And one mongod is of an older release here. With shards, tests/docker restores."""
    folder = tmp_path_factory.mktemp("b")  # a data folder's path has a bound
    seen_until(stack, HEALTHY, 300)  # whatever the test before did
    before, after, known = back_up(stack, folder / "shelf", [f"b{n}" for n in range(8)])
    with running_stack(root, folder / "new") as new:
        restore_into(new, folder / "shelf", before, after, known)


def test_a_shard_is_added_while_everything_runs(stack: Stack, servers: Path) -> None:
    seen_until(stack, HEALTHY, 300)  # whatever the test before did
    before = stack.pids()
    last = 'shard2 = ["shard2:27018"]\n'
    servers.write_text(servers.read_text().replace(last, f'{last}shard3 = ["shard3:27018"]\n'))
    with Phones(through(stack.url), ["grows"], rest_seconds=0.2) as phones:
        said = stack.up("--sharded", str(servers))
        phones.wait_for(200, more=5, seconds=400)  # emulated
    assert "shard shard3: added" in said
    assert stack.pids().items() - before.items() == {("shard3", stack.pids()["shard3"])}
    # Exactly what was confirmed, once: a detection that is there twice has one id.
    eventually(lambda: len(ids(stack, "grows")) == phones.acknowledged["grows"], 400)
    assert len(set(ids(stack, "grows"))) == phones.acknowledged["grows"]

    def shards() -> set[str]:
        answer = stack.get("/api/v1/system/database")
        return {row["name"] for row in answer.json().get("shards", [])}

    eventually(lambda: shards() == {"shard1", "shard2", "shard3"}, 400)
    storage = stack.script("storage")
    assert storage.returncode == 0, storage.stderr
    assert [line.split(":")[0] for line in storage.stdout.splitlines()] == [
        "shard1",
        "shard2",
        "shard3",
        "kept",
        "sealed",
        "a detection",
        "a sealed one",
        "a day",
        "free",
        "full in",
    ]


def ids(stack: Stack, staff_id: str) -> list[str]:
    """Return the ids of somebody's detections."""
    answer = stack.read(f"/api/v1/staff/{staff_id}/detections", limit=1000)
    return [row["id"] for row in answer.json()["data"]]
