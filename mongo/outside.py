"""Prepare a database that somebody else runs: Atlas, an operator, any replica set or cluster.

MONGODB_URI=mongodb://... python -m mongo.outside [--directory mongo/directory.csv]

It makes collections and indexes, shards where a router answers, and gives the data their name and
version. Safe to run again. Sets, shards, users and TLS are whose the database is.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from pymongo.errors import ConfigurationError, PyMongoError

from common.schema import DATABASE
from mongo import bootstrap, clients, data, sharding
from mongo.progress import Progress


def prepare(uri: str, beacons: Path | None, say: Callable[[str], None]) -> None:
    """Do what is missing. Raises what is in bootstrap.FAILURES, and PyMongoError."""
    progress = Progress(say, bootstrap.DEADLINE_SECONDS, lambda: None)
    with _connected(uri) as client:
        hello = client.admin.command("hello")
        data.check(data.current(client[DATABASE]))
        if hello.get("msg") == "isdbgrid":
            sharding.shard_collections(client, progress)
        elif "setName" not in hello:
            raise ConfigurationError("a server alone has no transactions: make it a replica set")
        bootstrap.make_collections(client)
        bootstrap.make_indexes(client)
        if beacons:
            bootstrap.load_directory(client, beacons, progress)
        data.bring_up(client[DATABASE], say)


def _connected(uri: str) -> clients.Client:
    """Return a connection. Raises PyMongoError also where the driver would go on without TLS."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            return clients.Client(
                uri,
                serverSelectionTimeoutMS=clients.SELECTION_TIMEOUT_MS,
                socketTimeoutMS=clients.COMMAND_TIMEOUT_MS,
                w="majority",
                appname="outside",
            )
        except UserWarning as warning:  # it warns of `tls=True`, and speaks plainly
            raise ConfigurationError(f"MONGODB_URI: {warning}") from None


def main() -> None:
    """Run the command; what goes wrong ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="python -m mongo.outside", description=__doc__)
    parser.add_argument("--directory", type=Path, help="beacons to load when there are none")
    options = parser.parse_args()
    uri = os.environ.get("MONGODB_URI", "")
    if not uri:
        sys.exit("outside: MONGODB_URI is not set: the database, with a user who may make indexes")
    try:
        prepare(uri, options.directory, lambda text: print(text, flush=True))
    except bootstrap.FAILURES as error:
        sys.exit(f"outside: {error}")
    except PyMongoError as error:
        sys.exit(f"outside: MongoDB refused: {error}")
    print("the database is ready")


if __name__ == "__main__":
    main()
