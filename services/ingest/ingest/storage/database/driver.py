"""The driver's errors in the service's words, and write commands without its bulk layers."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from bson import Timestamp
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.errors import OperationFailure, PyMongoError

from ingest.errors import StoreUnavailable, without_frames

DUPLICATE_KEY = 11000
# How each write is done: all that can be, and not answered before a majority has it.
DURABLY = {"ordered": False, "writeConcern": {"w": "majority"}}
# What MongoDB says of a hint to an index that is not there.
BAD_VALUE = 2

Result = TypeVar("Result")

log = logging.getLogger(__name__)


@contextmanager
def domain_errors() -> Iterator[None]:
    """Turn what the driver raises into StoreUnavailable."""
    try:
        yield
    except PyMongoError as error:
        raise _unavailable(error) from error


def _unavailable(error: PyMongoError) -> StoreUnavailable:
    """Return the same in the service's words, and let go of what was sent.

    The driver's frames refer to their own error, and from Python 3.12 on those of context managers.
    """
    return StoreUnavailable(without_documents(str(without_frames(error))))


def without_documents(text: str) -> str:
    """Return what MongoDB says without what it quotes: a command or a key may name a person."""
    return re.split(r" *\{|, full error", text, maxsplit=1)[0]


@contextmanager
def reading(
    collection: Collection[dict[str, Any]], as_of: Timestamp | None = None
) -> Iterator[ClientSession]:
    """Give a session that reads with all that the database had then. Raises StoreUnavailable.

    Of several routers one may still believe in a primary that was deposed, which has less, and a
    new primary shows older rows for a moment: it waits then, or fails.
    """
    with domain_errors(), collection.database.client.start_session() as session:
        if as_of:
            session.advance_operation_time(as_of)
        yield session


@contextmanager
def snapshot(collection: Collection[dict[str, Any]]) -> Iterator[ClientSession]:
    """Give a session whose reads all see the database as it was at the first of them.

    Of what a majority has. A router may take a moment that is over: read something before.
    Raises StoreUnavailable.
    """
    client = collection.database.client
    with domain_errors(), client.start_session(snapshot=True) as session:
        yield session


def readable(
    read: Callable[[dict[str, Any]], Result], documents: Iterable[dict[str, Any]]
) -> Iterator[Result]:
    """Yield what can be read: one that somebody restored by hand must not hide the others."""
    for document in documents:
        try:
            yield read(document)
        except (KeyError, ValueError, TypeError) as error:
            what = f"{read.__module__}.{read.__qualname__}"  # its `_id` may be a person's
            log.warning("a document cannot be read by %s: %s", what, type(error).__name__)


class Written(NamedTuple):
    """The code and the text of each statement that failed, and the latest time that it told."""

    failed: dict[int, tuple[int, str]]
    at: Timestamp


def command(
    collection: Collection[dict[str, Any]], name: str, statements: dict[str, Any]
) -> dict[str, Any]:
    """Run a command on a collection; return the reply. The driver does not repeat it.

    Its layers above cost more than a command.
    Raises StoreUnavailable: any of it may be done or not. Of
    itself it would read without the client's options, and fail at a date that no calendar has.
    """
    try:  # not `domain_errors`: a generator costs each command microseconds
        return collection.database.command(
            {name: collection.name} | statements, codec_options=collection.codec_options
        )
    except PyMongoError as error:
        raise _unavailable(error) from error


class There(NamedTuple):
    """The documents of the shards that answer, whether all do, and the database's time.

    A server that has just started tells none yet.
    """

    rows: list[dict[str, Any]]
    all_answered: bool
    at: Timestamp | None


def find_there(
    collection: Collection[dict[str, Any]], limit: int, find: dict[str, Any], index: str = ""
) -> There:
    """Find what a majority of each shard that answers has, at most `limit` documents.

    By an index, or without it while it is being made. As a command: the driver's cursors do not say
    whether a shard is missing. With a dead shard it takes all the time that it is given.
    Raises StoreUnavailable: no shard answers.
    """
    options: dict[str, Any] = {"limit": limit, "batchSize": limit + 1, "singleBatch": True}
    options |= {"allowPartialResults": True, "readConcern": {"level": "majority"}}
    hint = {"hint": index} if index else {}
    try:
        reply = command(collection, "find", find | options | hint)
    except StoreUnavailable as error:
        why = error.__cause__
        if not (hint and isinstance(why, OperationFailure) and why.code == BAD_VALUE):
            raise
        reply = command(collection, "find", find | options)
    cursor = reply["cursor"]
    all_answered = not cursor.get("partialResultsReturned")
    return There(cursor["firstBatch"], all_answered, reply.get("operationTime"))


def write(collection: Collection[dict[str, Any]], name: str, statements: dict[str, Any]) -> Written:
    """Run an unordered write, durably; return what of it failed.

    Raises StoreUnavailable: any of it may be done or not. The driver does not repeat it;
    the spool does.
    """
    return written(command(collection, name, statements | DURABLY))


def written(reply: dict[str, Any]) -> Written:
    """Return what a reply to a write says. Raises StoreUnavailable: no majority may have it."""
    if "writeConcernError" in reply:
        raise StoreUnavailable(str(reply["writeConcernError"]))
    failed = {
        error["index"]: (error["code"], without_documents(error["errmsg"]))
        for error in reply.get("writeErrors", [])
    }
    return Written(failed, cluster_time(reply))


def cluster_time(reply: dict[str, Any]) -> Timestamp:
    """Return the latest time that a reply tells: of its own shard, and of what that heard of.

    0 of a server that has just started, which tells none yet.
    """
    times: list[Timestamp | None] = [
        reply.get("operationTime"),
        reply.get("$clusterTime", {}).get("clusterTime"),
    ]
    return max((time for time in times if time), default=Timestamp(0, 0))
