"""How what services cache is written: in a transaction that raises the collection's revision."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from common.schema import DIRECTORY, Collection

if TYPE_CHECKING:  # the driver is the caller's
    from pymongo.client_session import ClientSession
    from pymongo.database import Database

MAX_STEP = 2**31 - 1
# How soon a service sees what another one wrote: one read of a small document tells.
CHECK_SECONDS = 2.0

Result = TypeVar("Result")


def current(database: "Database[dict[str, Any]]", collection: Collection) -> int:
    """Return a number that grows with every write to a collection by `change`, by any service."""
    return of_document(database[DIRECTORY.name].find_one(collection.name))


def of_document(document: dict[str, Any] | None) -> int:
    """Return the revision in what is stored of it, if anything is."""
    return int(document["revision"]) if document else 0


def change(
    database: "Database[dict[str, Any]]",
    collection: Collection,
    work: "Callable[[ClientSession], Result]",
) -> Result:
    """Run a write and raise the revision with it: both or neither, on all shards."""
    revisions = database[DIRECTORY.name]
    only = {"_id": collection.name}

    def whole(session: "ClientSession") -> Result:
        # First, since it makes another writer wait and then see all that we wrote.
        # By a random step, as in `latest`: a restored database comes to no known revision.
        step = 1 + secrets.randbelow(MAX_STEP)
        revisions.update_one(only, {"$inc": {"revision": step}}, session=session)
        return work(session)

    # Not in the transaction: that may not make a collection on a sharded cluster.
    revisions.update_one(only, {"$setOnInsert": {"revision": 0}}, upsert=True)
    with database.client.start_session() as session:
        return session.with_transaction(whole)
