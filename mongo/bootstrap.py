"""Bring a cluster to its configured topology; safe to run again, whatever happened before.

python -m mongo.bootstrap --topology mongo/topology.toml --secrets FOLDER
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pymongo.errors import OperationFailure, PyMongoError

from common import schema
from common.schema import DATABASE
from mongo import clients, data, directory, replica_set, services_role, sharding
from mongo.backup import marks
from mongo.progress import NotInTimeError, Progress
from mongo.secrets import ADMIN_USER, APP_USER, Secrets
from mongo.topology import ReplicaSet, Topology, TopologyError, load

DEADLINE_SECONDS = 180.0
DUPLICATE_USER = 51003
AUTHENTICATION_FAILED = 18
ADMIN_ROLES: list[Any] = [
    "clusterAdmin",
    "userAdminAnyDatabase",
    {"role": "readWrite", "db": DATABASE},
    {"role": "dbAdmin", "db": DATABASE},
    {"role": "read", "db": "config"},
]
APP_ROLES: list[Any] = [{"role": services_role.NAME, "db": DATABASE}]


class KeyFileError(Exception):
    """A server has another key file than we; the text says what to do."""


class LostVolumeError(Exception):
    """A part of a cluster has lost its data; the text says what to do."""


# What ends the command with one line.
FAILURES = (
    TopologyError,
    NotInTimeError,
    KeyFileError,
    LostVolumeError,
    data.NewerDataError,
    directory.DirectoryError,
    OSError,
)


def bootstrap(
    topology: Topology,
    secrets: Secrets,
    beacons: Path | None,
    say: Callable[[str], None],
    *,
    deadline_seconds: float = DEADLINE_SECONDS,
    alive: Callable[[], None] = lambda: None,
    wait: bool = False,
) -> bool:
    """Do what is missing, in order; `wait` also for the data that new shards have to get.

    Return whether the services may use the database: not while a backup is half restored.
    Raises what is in FAILURES, and PyMongoError.
    """
    progress = Progress(say, deadline_seconds, alive)
    with _one_key_file():
        for wanted_set in topology.sets:
            replica_set.ensure(
                wanted_set,
                secrets,
                progress,
                alone=topology.replica_set is not None,
                before_initiation=partial(_check_is_new, topology, wanted_set, secrets),
            )
        _ensure_administrator(topology, secrets, progress)
    with _administrator(topology, secrets, progress) as client:
        if topology.shards:
            sharding.ensure_shards(topology.shards, client, progress)
            sharding.ensure_collections(topology.shards, client, progress)
        make_collections(client)
        services_role.ensure(client)
        data.check(data.current(client[DATABASE]))
        _ensure_user(client, DATABASE, APP_USER, secrets.app_password, APP_ROLES, progress)
        make_indexes(client)
        if beacons:
            load_directory(client, beacons, progress)
        if topology.shards and wait:
            sharding.wait_until_moved(client, progress)
        half = marks.restoring(client[DATABASE])
        if half:
            progress.say("a backup is half restored, and nobody sees it: ./scripts/restore goes on")
        else:
            data.bring_up(client[DATABASE], progress.say)
        return not half


def _check_is_new(topology: Topology, wanted: ReplicaSet, secrets: Secrets) -> None:
    """Raise LostVolumeError if a set without data is one that the rest of a cluster knows.

    Initiated anew it would be taken for the old one, and nobody told what is missing.
    """
    if wanted == topology.config:
        of_shards = [member for shard in topology.shards for member in shard.members]
        is_known = any("setName" in (clients.hello(member) or {}) for member in of_shards)
    elif topology.config and (primary := replica_set.primary_of(topology.config)):
        with clients.as_system(primary, secrets) as config:
            is_known = config["config"]["shards"].find_one({"_id": wanted.name}) is not None
    else:
        is_known = False
    if is_known:
        raise LostVolumeError(
            f"the data of {wanted.name} are gone, and the rest of the cluster knows it: its folder "
            "is empty, or another one. Bring it back, or restore a backup into a new stack "
            "(docs/runbook.md, “A volume is lost”)"
        )


@contextmanager
def _one_key_file() -> Iterator[None]:
    """Raise KeyFileError where a server does not know us by the key file."""
    try:
        yield
    except OperationFailure as error:
        if error.code != AUTHENTICATION_FAILED:
            raise
        raise KeyFileError(
            "a server of the database was started with another key file: restart all of them, so "
            "that they read the one that is there now "
            "(docs/runbook.md, “MongoDB's key file is lost”)"
        ) from error


def _ensure_administrator(topology: Topology, secrets: Secrets, progress: Progress) -> None:
    primary = progress.wait_for("primary", lambda: replica_set.primary_of(topology.users_set))
    with clients.as_system(primary, secrets) as client:
        _ensure_user(client, "admin", ADMIN_USER, secrets.admin_password, ADMIN_ROLES, progress)


def _administrator(topology: Topology, secrets: Secrets, progress: Progress) -> clients.Client:
    """Return a connection as administrator, once a router (or the primary) takes it."""
    entry = topology.routers[0] if topology.routers else topology.users_set

    def connect() -> clients.Client | None:
        client = clients.as_administrator(entry, secrets)
        try:
            client.admin.command("ping")
            client[DATABASE][schema.BEACONS.name].find_one()
        except OperationFailure as error:
            client.close()
            if error.code != AUTHENTICATION_FAILED:  # a router sees new users a moment later
                raise
        except PyMongoError:
            client.close()
        else:
            return client
        return None

    return progress.wait_for(f"login of the administrator at {entry}", connect)


def _ensure_user(
    client: clients.Client,
    database: str,
    name: str,
    password: str,
    roles: list[Any],
    progress: Progress,
) -> None:
    """Create a user, or give the one that is there this password and these roles."""
    try:
        client[database].command("createUser", name, pwd=password, roles=roles)
    except OperationFailure as error:
        if error.code != DUPLICATE_USER:
            raise
        client[database].command("updateUser", name, pwd=password, roles=roles)
    else:
        progress.say(f"user {name} of {database}: created")


def make_collections(client: clients.Client) -> None:
    """Make the collections that no service may make."""
    there = set(client[DATABASE].list_collection_names())
    for name in {schema.AUDIT.name, schema.PEOPLE.name} - there:
        # Who makes it says how it can be changed; and no transaction has to.
        client[DATABASE].create_collection(name)


def make_indexes(client: clients.Client) -> None:
    """Make the indexes of all collections."""
    for collection in schema.COLLECTIONS:
        for index in collection.indexes:
            client[DATABASE][collection.name].create_index(index.keys, **index.options)


def load_directory(client: clients.Client, path: Path, progress: Progress) -> None:
    """Load beacons where there are none. Raises DirectoryError, OSError."""
    if client[DATABASE][schema.BEACONS.name].find_one() is None:
        loaded = directory.load(directory.read(path).beacons, client[DATABASE])
        progress.say(f"directory of beacons: {loaded}")


def main() -> None:
    """Run the command; what goes wrong ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="python -m mongo.bootstrap", description=__doc__)
    parser.add_argument("--topology", type=Path, required=True)
    parser.add_argument("--secrets", type=Path, required=True, help="made by mongo.secrets")
    parser.add_argument("--directory", type=Path, help="beacons to load when there are none")
    parser.add_argument("--local-port", type=int, help="every server on 127.0.0.1, from here on")
    parser.add_argument("--deadline", type=float, default=DEADLINE_SECONDS, metavar="SECONDS")
    parser.add_argument("--wait", action="store_true", help="until each shard has its data")
    options = parser.parse_args()
    try:
        topology = load(options.topology)
        if options.local_port:
            topology = topology.on_this_machine(options.local_port)
        bootstrap(
            topology,
            Secrets.read(options.secrets),
            options.directory,
            lambda text: print(text, flush=True),
            deadline_seconds=options.deadline,
            wait=options.wait,
        )
    except FAILURES as error:
        sys.exit(f"bootstrap: {error}")
    except PyMongoError as error:
        sys.exit(f"bootstrap: MongoDB refused: {error}")
    print("the cluster is as configured")


if __name__ == "__main__":
    main()
