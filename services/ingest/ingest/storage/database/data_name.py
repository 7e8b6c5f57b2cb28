"""How this database is called: by a name that it got when it was made, and in no other."""

from datetime import datetime
from typing import Any, NamedTuple

from bson import ObjectId
from bson.errors import InvalidId
from pymongo.database import Database

from common import schema
from ingest.storage.database.driver import domain_errors


class DataName(NamedTuple):
    """A name; the later a database was made, the greater it is."""

    text: str

    @property
    def made_at(self) -> datetime:
        """Return when the database was made."""
        return ObjectId(self.text).generation_time

    @classmethod
    def read(cls, database: Database[dict[str, Any]]) -> "DataName | None":
        """Return the name of a database, None where it has none. Raises StoreUnavailable."""
        with domain_errors():
            data = database[schema.DIRECTORY.name].find_one({"_id": schema.DATA}) or {}
        return cls.known(str(data.get("name")))

    @classmethod
    def known(cls, text: str) -> "DataName | None":
        """Return what a text names, None for what is no name."""
        try:
            return cls(str(ObjectId(text)))
        except (InvalidId, TypeError):
            return None
