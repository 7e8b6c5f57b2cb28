"""A whole stack on a sharded cluster, started by one command."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from scripts.processes.waiting import eventually
from tests.needs import need_routers
from tests.system.conftest import Stack, kill_tree, running_stack

pytestmark = pytest.mark.long

PARTS = {"configsvr", "shard1", "shard2", "mongos-1", "mongos-2"}


@pytest.fixture(scope="module")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack of its own: these tests break it."""
    need_routers()
    with running_stack(root, tmp_path_factory.mktemp("sharded"), "--sharded") as stack:
        yield stack


def store(stack: Stack, staff_id: int, event_id: str) -> bool:
    """Send a detection, which is stored once however often it is sent; tell whether it is."""
    answer = stack.detect(staff_id, event_id=event_id)
    return (answer.status_code, answer.text) == (200, "New Beacon Detection Added")


def test_the_contract_holds(stack: Stack) -> None:
    assert set(stack.pids()) > PARTS
    for staff_id in range(20):
        eventually(partial(store, stack, staff_id, "first"), 120)
    for staff_id in range(20):
        assert len(stack.history(staff_id)) == 1
    heard = stack.read("/retrieveformonitoring").json()["location"]
    assert {found["staff_id"] for found in heard} == set(range(20))
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
