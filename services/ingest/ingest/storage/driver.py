"""Write commands without the driver's layers for bulk writes, which cost more than the commands."""

from typing import Any

from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from ingest.errors import StoreUnavailable

DUPLICATE_KEY = 11000


def write_errors(
    collection: Collection[dict[str, Any]], command: str, statements: dict[str, Any]
) -> dict[int, tuple[int, str]]:
    """Run an unordered write, durably; return the code and the text of each statement that failed.

    StoreUnavailable: any of it may be done or not. The driver does not repeat it; the spool does.
    """
    durably = {"ordered": False, "writeConcern": {"w": "majority"}}
    try:
        reply = collection.database.command({command: collection.name} | statements | durably)
    except PyMongoError as error:
        raise StoreUnavailable(str(error)) from error
    if "writeConcernError" in reply:
        raise StoreUnavailable(str(reply["writeConcernError"]))
    return {one["index"]: (one["code"], one["errmsg"]) for one in reply.get("writeErrors", [])}
