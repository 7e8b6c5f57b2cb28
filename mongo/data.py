"""The name of a database, and the version of what it holds: older data become this program's.

An older program leaves newer data alone; the way back is the backup from before.

python -m mongo.data --topology FILE --secrets FOLDER    tells whether a bootstrap would change them
"""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from bson import ObjectId
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError, PyMongoError

from common import schema
from mongo.clients import as_administrator
from mongo.migrations import MIGRATIONS, VERSION, Say
from mongo.secrets import Secrets
from mongo.topology import TopologyError, load

__all__ = ["VERSION", "NewerDataError", "bring_up", "check"]

Document = dict[str, Any]
# What was stored before there were versions: by 1.0, or by the source system.
FIRST = 1
_THE_ONE = {"_id": schema.DATA}


class NewerDataError(Exception):
    """A newer program made the data; the text says what to do."""


def check(data: Document) -> None:
    """Raise NewerDataError if the document of that name tells of newer data than we know."""
    if (version := int(data.get("version", FIRST))) > VERSION:
        made_by = f"Waymark {data['by']}" if data.get("by") else "a newer Waymark"
        raise NewerDataError(
            f"{made_by} has made these data version {version}, and this one knows {VERSION}: update"
            " this one, or restore the backup from before into an empty stack (docs/upgrading.md)"
        )


def is_newer(database: Database[Document]) -> bool:
    """Tell whether a newer program made the data."""
    return int(current(database).get("version", FIRST)) > VERSION


def current(database: Database[Document]) -> Document:
    """Return the document that tells both; empty where there is none."""
    return database[schema.DIRECTORY.name].find_one(_THE_ONE) or {}


def bring_up(database: Database[Document], say: Say, name: ObjectId | None = None) -> None:
    """Give a database a name, if it has none, and bring its data to this version.

    Killed, or run twice at once, it does no harm: what is done already is found to be so.
    Raises NewerDataError, PyMongoError.
    """
    directory = database[schema.DIRECTORY.name]
    is_new = database[schema.STAFF.name].find_one({}, {"_id": 1}) is None
    first = {"name": name or ObjectId(), "version": VERSION if is_new else FIRST}
    with suppress(DuplicateKeyError):  # another one did so at the same time
        directory.update_one(_THE_ONE, {"$setOnInsert": first}, upsert=True)
    data = current(database)
    check(data)
    by = os.environ.get("WAYMARK_VERSION", "")
    for version, what, run in MIGRATIONS:
        if version > int(data["version"]):
            say(f"data version {version}: {what}")
            run(database, say)
            older = _THE_ONE | {"version": {"$lt": version}}
            directory.update_one(older, {"$set": {"version": version, "by": by}})


def main() -> None:
    """Print from which version to which, nothing where none rises; it changes nothing."""
    parser = argparse.ArgumentParser(prog="python -m mongo.data", description=__doc__)
    parser.add_argument("--topology", type=Path, required=True)
    parser.add_argument("--secrets", type=Path, required=True, help="made by mongo.secrets")
    parser.add_argument("--local-port", type=int, help="every server on 127.0.0.1, from here on")
    options = parser.parse_args()
    try:
        topology = load(options.topology)
        if options.local_port:
            topology = topology.on_this_machine(options.local_port)
        entry = topology.routers[0] if topology.routers else topology.users_set
        with as_administrator(entry, Secrets.read(options.secrets)) as client:
            data = current(client[schema.DATABASE])
            check(data)
    except (TopologyError, NewerDataError, OSError, PyMongoError) as error:
        sys.exit(f"data: {error}")
    if (version := int(data.get("version", FIRST))) < VERSION:
        print(f"the data, version {version}, become version {VERSION}")


if __name__ == "__main__":
    main()
