"""Which servers there are, and what they are to each other: read from a topology file."""

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
EMBEDDED = FOLDER / "topology.embedded.toml"
SHARDED = FOLDER / "topology.toml"

# Local ports leave room for 10 of a kind, so that growth moves no server to another port.
ROOM = 10


class TopologyError(ValueError):
    """The file describes no cluster; the text says what is wrong in it."""


class ReplicaSet(NamedTuple):
    """A replica set and its members as `host:port`."""

    name: str
    members: tuple[str, ...]

    @property
    def seed(self) -> str:
        """Return the set as one connection string part: `name/host:port,host:port`."""
        return f"{self.name}/{','.join(self.members)}"


class Topology(NamedTuple):
    """Either one replica set, or a config server set, shards and routers (mongos)."""

    replica_set: ReplicaSet | None
    config: ReplicaSet | None
    shards: tuple[ReplicaSet, ...]
    routers: tuple[str, ...]

    @property
    def sets(self) -> tuple[ReplicaSet, ...]:
        """Return every replica set, the one that keeps the users first."""
        first = self.replica_set or self.config
        return (first, *self.shards) if first else self.shards

    @property
    def users_set(self) -> ReplicaSet:
        """Return the set that keeps the cluster's users."""
        return self.sets[0]

    def on_this_machine(self, first_port: int) -> "Topology":
        """Return the same cluster with every server on 127.0.0.1, from `first_port` on."""
        ports = (itertools.count(first_port + ROOM * block) for block in itertools.count())
        routers = _local(self.routers, next(ports)) if self.routers else ()
        local = [ReplicaSet(old.name, _local(old.members, next(ports))) for old in self.sets]
        if self.replica_set:
            return Topology(local[0], None, (), ())
        return Topology(None, local[0], tuple(local[1:]), routers)


def _local(members: tuple[str, ...], ports: Iterator[int]) -> tuple[str, ...]:
    return tuple(f"127.0.0.1:{port}" for _, port in zip(members, ports, strict=False))


def load(path: Path) -> Topology:
    """Read a topology file. Raises TopologyError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        sets = {kind: _sets(tables.pop(kind, {})) for kind in ("replica_set", "config", "shards")}
        routers = [
            member for routing in _sets(tables.pop("routers", {})) for member in routing.members
        ]
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise TopologyError(f"{path}: {error}") from error
    shape = (len(sets["replica_set"]), len(sets["config"]), bool(sets["shards"]), bool(routers))
    if tables or shape not in ((1, 0, False, False), (0, 1, True, True)):
        raise TopologyError(
            f"{path}: must hold one [replica_set], or one [config], [shards] and [routers]"
        )
    only = {kind: of_kind[0] if of_kind else None for kind, of_kind in sets.items()}
    return Topology(only["replica_set"], only["config"], sets["shards"], tuple(routers))


def _sets(table: dict[str, list[str]]) -> tuple[ReplicaSet, ...]:
    sets = tuple(ReplicaSet(name, tuple(members)) for name, members in table.items())
    for member in (member for replica_set in sets for member in replica_set.members):
        host, _, port = member.rpartition(":")
        if not host or not port.isdecimal():
            raise TypeError(f"{member!r} is not host:port")
    return sets
