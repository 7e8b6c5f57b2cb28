"""The topology file, and where its servers lie on one machine."""

from pathlib import Path

import pytest

from mongo import topology
from mongo.topology import ReplicaSet, TopologyError


def test_the_files_that_come_with_it() -> None:
    sharded = topology.load(topology.SHARDED)
    assert sharded.config == ReplicaSet("config", ("configsvr:27019",))
    assert [shard.seed for shard in sharded.shards] == [
        "shard1/shard1:27018",
        "shard2/shard2:27018",
    ]
    assert sharded.routers == ("mongos-1:27017", "mongos-2:27017")
    ha = topology.load(topology.FOLDER / "topology.ha.toml")
    assert [len(replica_set.members) for replica_set in ha.sets] == [3, 3, 3]
    embedded = topology.load(topology.EMBEDDED)
    assert embedded.replica_set == ReplicaSet("embedded", ("mongod:27017",))


def test_growth_moves_no_local_port(tmp_path: Path) -> None:
    small = topology.load(topology.SHARDED).on_this_machine(27117)
    assert small.routers == ("127.0.0.1:27117", "127.0.0.1:27118")
    assert [replica_set.members[0] for replica_set in small.sets] == [
        "127.0.0.1:27127",
        "127.0.0.1:27137",
        "127.0.0.1:27147",
    ]
    file = tmp_path / "grown.toml"
    grown = topology.SHARDED.read_text().replace(
        'shard2 = ["shard2:27018"]',
        'shard2 = ["shard2:27018", "shard2-2:27018"]\nshard3 = ["shard3:27018"]',
    )
    file.write_text(grown)
    big = topology.load(file).on_this_machine(27117)
    assert big.routers == small.routers
    assert [replica_set.members[0] for replica_set in big.sets][:3] == [
        replica_set.members[0] for replica_set in small.sets
    ]
    assert big.shards[1].members[1] == "127.0.0.1:27148"
    assert topology.load(topology.EMBEDDED).on_this_machine(5).users_set.members == ("127.0.0.1:5",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not toml",
        'replica_set = "mongod:27017"',
        "[replica_set]\na = [1]",
        '[replica_set]\na = ["mongod"]',
        '[replica_set]\na = ["a:1"]\n[routers]\nmongos = ["b:2"]',
        '[config]\nc = ["a:1"]\n[shards]\ns = ["b:1"]',
        '[replica_set]\na = ["a:1"]\n[typo]\nb = ["b:2"]',
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(TopologyError, match=r"bad\.toml"):
        topology.load(file)
