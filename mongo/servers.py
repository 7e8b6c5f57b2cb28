"""How to run each server of a topology on this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mongo.topology import FOLDER, ReplicaSet, Topology


class Server(NamedTuple):
    """One mongod or mongos: its name in the topology file, its local port and its command."""

    name: str
    port: int
    command: list[str]


def servers(
    named: Topology, first_port: int, binaries: Path, data: Path, keyfile: Path
) -> Iterator[Server]:
    """Yield every server, members before routers; makes the folder of each member's data."""
    local = named.on_this_machine(first_port)
    for replica_set, local_set in zip(named.sets, local.sets, strict=True):
        role = _role(named, replica_set)
        for member, address in zip(replica_set.members, local_set.members, strict=True):
            name = _host(member)
            dbpath = data / name
            dbpath.mkdir(mode=0o700, parents=True, exist_ok=True)
            options = [*role, "--replSet", replica_set.name, "--dbpath", str(dbpath)]
            yield _server(name, address, binaries / "mongod", keyfile, options)
    for router, address in zip(named.routers, local.routers, strict=True):
        config = local.config.seed if local.config else ""
        options = ["--configdb", config]
        yield _server(_host(router), address, binaries / "mongos", keyfile, options)


def _role(named: Topology, replica_set: ReplicaSet) -> list[str]:
    if replica_set == named.config:
        return ["--configsvr"]
    return ["--shardsvr"] if replica_set in named.shards else []


def _server(name: str, address: str, binary: Path, keyfile: Path, options: list[str]) -> Server:
    port = address.rpartition(":")[2]
    common = ["--config", str(FOLDER / f"{binary.name}.conf"), "--keyFile", str(keyfile)]
    command = [str(binary), *common, "--bind_ip", "127.0.0.1", "--port", port, *options]
    return Server(name, int(port), command)


def _host(member: str) -> str:
    return member.rpartition(":")[0]
