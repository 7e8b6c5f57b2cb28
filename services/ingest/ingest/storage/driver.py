"""The driver's errors in the service's words, and write commands without its bulk layers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from ingest.errors import StoreUnavailable

DUPLICATE_KEY = 11000


@contextmanager
def domain_errors() -> Iterator[None]:
    """Turn what the driver raises into StoreUnavailable."""
    try:
        yield
    except PyMongoError as error:
        raise StoreUnavailable(str(error)) from error


def write(
    collection: Collection[dict[str, Any]], command: str, statements: dict[str, Any]
) -> dict[int, tuple[int, str]]:
    """Run an unordered write, durably; return the code and the text of each statement that failed.

    The driver's layers for bulk writes cost more than the command. StoreUnavailable: any of it may
    be done or not. The driver does not repeat it; the spool does.
    """
    durably = {"ordered": False, "writeConcern": {"w": "majority"}}
    try:  # not `domain_errors`: a generator costs each command microseconds
        reply = collection.database.command({command: collection.name} | statements | durably)
    except PyMongoError as error:
        raise StoreUnavailable(str(error)) from error
    if "writeConcernError" in reply:
        raise StoreUnavailable(str(reply["writeConcernError"]))
    return {one["index"]: (one["code"], one["errmsg"]) for one in reply.get("writeErrors", [])}
