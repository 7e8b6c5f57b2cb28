"""Connections of the bootstrap: to one member as the cluster itself, or as its administrator."""

from typing import Any

from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from mongo.secrets import ADMIN_USER, Secrets
from mongo.topology import ReplicaSet

Client = MongoClient[dict[str, Any]]

# Of a server on the slowest machine, with the connection; it is asked until it is there.
HELLO_TIMEOUT_MS = 5000
COMMAND_TIMEOUT_MS = 60_000
SELECTION_TIMEOUT_MS = 10_000


def hello(address: str) -> dict[str, Any] | None:
    """Return what a server says of itself to anybody, None when it does not answer."""
    try:
        with Client(address, directConnection=True, timeoutMS=HELLO_TIMEOUT_MS) as client:
            return dict(client.admin.command("hello"))
    except PyMongoError:
        return None


def as_system(address: str, secrets: Secrets) -> Client:
    """Connect to one mongod as `__system`, which the key file proves; mongos refuses it."""
    return Client(
        address,
        directConnection=True,
        username="__system",
        password=secrets.keyfile,
        authSource="local",
        authMechanism="SCRAM-SHA-256",
        socketTimeoutMS=COMMAND_TIMEOUT_MS,
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        appname="bootstrap",
    )


def as_administrator(entry: str | ReplicaSet, secrets: Secrets) -> Client:
    """Connect as `admin` to a router, or to the primary of a replica set."""
    members = entry.members if isinstance(entry, ReplicaSet) else (entry,)
    return Client(
        list(members),
        replicaSet=entry.name if isinstance(entry, ReplicaSet) else None,
        username=ADMIN_USER,
        password=secrets.admin_password,
        authSource="admin",
        socketTimeoutMS=COMMAND_TIMEOUT_MS,
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        w="majority",
        appname="bootstrap",
    )


def attempt(
    client: Client,
    command: dict[str, Any],
    *,
    again: frozenset[int],
    done: frozenset[int] = frozenset(),
) -> bool | None:
    """Run an administrative command: True when it is done, None when it should be tried again.

    `again` and `done` are error codes of MongoDB with that meaning; others are raised.
    """
    try:
        client.admin.command(command)
    except AutoReconnect:
        return None
    except OperationFailure as error:
        if error.code in again:
            return None
        if error.code not in done:
            raise
    return True
