"""The driver's errors in the service's words, and write commands without its bulk layers."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from ingest.errors import StoreUnavailable

DUPLICATE_KEY = 11000

Result = TypeVar("Result")

log = logging.getLogger(__name__)


@contextmanager
def domain_errors() -> Iterator[None]:
    """Turn what the driver raises into StoreUnavailable."""
    try:
        yield
    except PyMongoError as error:
        raise StoreUnavailable(str(error)) from error


def readable(
    read: Callable[[dict[str, Any]], Result], documents: Iterable[dict[str, Any]]
) -> Iterator[Result]:
    """Yield what can be read: one that somebody restored by hand must not hide the others."""
    for document in documents:
        try:
            yield read(document)
        except (KeyError, ValueError, TypeError):
            log.warning("document %r cannot be read", document.get("_id"))


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
