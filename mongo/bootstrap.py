"""Bring a cluster to its configured topology; safe to run again, whatever happened before.

python -m mongo.bootstrap --topology mongo/topology.toml --secrets FOLDER
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pymongo.errors import OperationFailure, PyMongoError

from common import schema
from common.schema import DATABASE
from mongo import clients, directory, replica_set, sharding
from mongo.progress import NotInTimeError, Progress
from mongo.secrets import ADMIN_USER, APP_USER, Secrets
from mongo.topology import Topology, TopologyError, load

DEADLINE_SECONDS = 180.0
DUPLICATE_ROLE, DUPLICATE_USER = 51002, 51003
AUTHENTICATION_FAILED = 18
ADMIN_ROLES: list[Any] = [
    "clusterAdmin",
    "userAdminAnyDatabase",
    {"role": "readWrite", "db": DATABASE},
    {"role": "dbAdmin", "db": DATABASE},
    {"role": "read", "db": "config"},
]
# What the services' user may do.
APP_ROLE = "waymark"
APP_ROLES: list[Any] = [{"role": APP_ROLE, "db": DATABASE}]


def bootstrap(
    topology: Topology,
    secrets: Secrets,
    beacons: Path | None,
    say: Callable[[str], None],
    *,
    deadline_seconds: float = DEADLINE_SECONDS,
    alive: Callable[[], None] = lambda: None,
    wait: bool = False,
) -> None:
    """Do what is missing, in order; `wait` also for the data that new shards have to get.

    Raises NotInTimeError, DirectoryError, PyMongoError.
    """
    progress = Progress(say, deadline_seconds, alive)
    for wanted_set in topology.sets:
        replica_set.ensure(wanted_set, secrets, progress, alone=topology.replica_set is not None)
    _ensure_administrator(topology, secrets, progress)
    with _administrator(topology, secrets, progress) as client:
        if topology.shards:
            sharding.ensure_shards(topology.shards, client, progress)
            sharding.ensure_collections(topology.shards, client, progress)
        if schema.AUDIT.name not in client[DATABASE].list_collection_names():
            # Who makes it says how it can be changed.
            client[DATABASE].create_collection(schema.AUDIT.name)
        _ensure_role(client)
        _ensure_user(client, DATABASE, APP_USER, secrets.app_password, APP_ROLES, progress)
        _make_indexes(client)
        if beacons:
            _load_directory(client, beacons, progress)
        if topology.shards and wait:
            sharding.wait_until_moved(client, progress)


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


def _ensure_role(client: clients.Client) -> None:
    """Create the role of the services' user, or give it these privileges."""
    privileges = [
        {
            "resource": {"db": DATABASE, "collection": collection.name},
            "actions": list(collection.actions),
        }
        for collection in schema.COLLECTIONS
    ]
    try:
        client[DATABASE].command("createRole", APP_ROLE, privileges=privileges, roles=[])
    except OperationFailure as error:
        if error.code != DUPLICATE_ROLE:
            raise
        client[DATABASE].command("updateRole", APP_ROLE, privileges=privileges)


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


def _make_indexes(client: clients.Client) -> None:
    for collection in schema.COLLECTIONS:
        for index in collection.indexes:
            client[DATABASE][collection.name].create_index(index.keys, **index.options)


def _load_directory(client: clients.Client, path: Path, progress: Progress) -> None:
    if client[DATABASE][schema.BEACONS.name].find_one() is None:
        loaded = directory.load(directory.read(path), client[DATABASE])
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
    except (TopologyError, NotInTimeError, directory.DirectoryError, OSError) as error:
        sys.exit(f"bootstrap: {error}")
    except PyMongoError as error:
        sys.exit(f"bootstrap: MongoDB refused: {error}")
    print("the cluster is as configured")


if __name__ == "__main__":
    main()
