"""A whole stack on a sharded cluster, started by one command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.processes.waiting import eventually
from tests.system.conftest import Stack, kill_tree

PARTS = {"configsvr", "shard1", "shard2", "mongos-1", "mongos-2"}


@pytest.fixture(scope="module")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(root, tmp_path_factory.mktemp("sharded") / "data")
    stack.up("--sharded")
    yield stack
    stack.down()


def test_the_contract_holds(stack: Stack) -> None:
    assert set(stack.pids()) > PARTS
    for staff_id in range(20):
        assert stack.detect(staff_id).text == "New Beacon Detection Added"
    for staff_id in range(20):
        assert len(stack.history(staff_id)) == 1
    heard = stack.get("/retrieveformonitoring").json()["location"]
    assert {found["staff_id"] for found in heard} == set(range(20))
    # The screen "System" tells what lies on each shard.
    shards = stack.get("/api/v1/system/database").json()["shards"]
    assert {shard["name"] for shard in shards} == {"shard1", "shard2"}
    assert sum(shard["documents"] for shard in shards) == 20


@pytest.mark.parametrize("name", ["mongos-1", "shard1", "configsvr"])
def test_a_killed_part_comes_back_with_everything(stack: Stack, name: str) -> None:
    before = {staff_id: len(stack.history(staff_id)) for staff_id in range(20)}
    kill_tree(stack.pids()[name])
    eventually(lambda: stack.script("status").returncode == 0, 120)
    for staff_id, count in before.items():
        eventually(lambda s=staff_id: stack.detect(s, event_id=name).status_code == 200, 120)  # type: ignore[misc]
        assert len(stack.history(staff_id)) == count + 1
