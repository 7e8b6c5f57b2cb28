"""The collection `backups`: what a backup, or a restore that is under way, marks in a database.

The services have no business with it.
"""

from typing import Any

from bson import ObjectId
from pymongo.client_session import ClientSession
from pymongo.database import Database

MARKS = "backups"
_RESTORING = "restoring"

Document = dict[str, Any]


def mark_copy(database: Database[Document], session: ClientSession) -> ObjectId:
    """Store something whose time is the backup's, and which the change stream tells."""
    marks, mark = database[MARKS], ObjectId()
    marks.insert_one({"_id": mark}, session=session)
    return mark


def remove_copy(database: Database[Document], mark: ObjectId) -> None:
    """Remove that, and what backups left that were interrupted."""
    database[MARKS].delete_many({"_id": {"$lte": mark}})  # other types than its are not less


def begin_restore(database: Database[Document], backup: str) -> bool:
    """Mark that a backup is being restored, if no other is; tell whether this is so now."""
    mark = {"_id": _RESTORING, "backup": backup}
    database[MARKS].update_one({"_id": _RESTORING}, {"$setOnInsert": mark}, upsert=True)
    return restoring(database) == backup


def restoring(database: Database[Document]) -> str:
    """Return which backup is being restored, "" for none."""
    mark = database[MARKS].find_one({"_id": _RESTORING})
    return mark["backup"] if mark else ""


def end_restore(database: Database[Document]) -> None:
    """Mark that it is restored."""
    database[MARKS].delete_one({"_id": _RESTORING})
