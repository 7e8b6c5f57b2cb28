"""What the database holds: collections, shard keys, indexes, and what the services may do there."""

from typing import Any, NamedTuple

DATABASE = "ICT3102"
# The field of a detection with the time of the database's logical clock at which it was stored.
STAMP = "stored"

# What the services may ask of the whole database: the room on its disks.
OF_DATABASE = ("dbStats",)
_DATA = ("find", "insert", "update", "remove", "changeStream", "collStats")
WORK = (*_DATA, "createCollection", "createIndex", "dropIndex", "listIndexes")
ADD = ("find", "insert")


class Index(NamedTuple):
    """An index: fields with 1 or -1 for the order, and, where it has but some documents, which."""

    keys: tuple[tuple[str, int], ...]
    only: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Return the name that MongoDB gives it."""
        return "_".join(f"{field}_{order}" for field, order in self.keys)

    @property
    def options(self) -> dict[str, Any]:
        """Return the driver's options with which it is made."""
        return {"partialFilterExpression": self.only} if self.only else {}


class Collection(NamedTuple):
    """A collection; one without a shard key lies on one shard.

    The key is one field, hashed: a compound key loses targeting (ARCHITECTURE.md, Decisions).
    """

    name: str
    shard_key: str = ""
    indexes: tuple[Index, ...] = ()
    actions: tuple[str, ...] = WORK  # of the services' user


# A history, read from the index alone.
HISTORY = Index((("staff_id", 1), ("timestamp", -1), ("level", 1), ("location", 1)))
# The last 15 minutes.
BY_TIME = Index((("timestamp", -1),))
# Covers who was where last, the unknown beacons, and what a correction has to change.
BY_BEACON = Index(
    (("mac", 1), ("level", 1), ("location", 1), ("timestamp", -1), ("staff_id", 1)),
)
# What is new of a person; what is new of everybody.
BY_STAMP_OF_STAFF = Index((("staff_id", 1), (STAMP, 1), ("timestamp", 1)))
BY_STAMP = Index(((STAMP, 1),))
# What a wrong clock stamped, by its place: of all others the database only sees that they are none.
BY_TRUE_TIME = Index(
    (("level", 1), ("location", 1), ("heard", 1), ("timestamp", 1), ("staff_id", 1)),
    only={"heard": {"$exists": True}},
)

STAFF = Collection(
    "staff",
    "staff_id",
    (HISTORY, BY_TIME, BY_BEACON, BY_STAMP_OF_STAFF, BY_STAMP, BY_TRUE_TIME),
)
# Blocks by a beacon at a place: each of their places has an entry.
SEALED_BY_BEACON = Index(
    (
        ("places.mac", 1),
        ("places.level", 1),
        ("places.location", 1),
        ("until", -1),
        ("since", 1),
    ),
)
# Covers how many detections blocks have.
SEALED_BY_TIME = Index((("until", 1), ("count", 1)))
SEALED = Collection("sealed", "staff_id", (SEALED_BY_BEACON, SEALED_BY_TIME))
LATEST = Collection("latest", "_id")
NOTES = Collection("notes")
BEACONS = Collection("beacons", "level")
PEOPLE = Collection("people")
DIRECTORY = Collection("directory")  # the revisions of `beacons` and `people`
# The document of `directory` that names this database, and tells the version of its data.
DATA = "data"
LOST_CONTACTS = Collection("lost_contacts")
TELEMETRY = Collection("telemetry")  # of the beacons in `beacons`
TOKENS = Collection("tokens")
ACCOUNTS = Collection("accounts")
# Nobody who has the services' password can change what the audit holds.
AUDIT = Collection("audit", actions=ADD)
COLLECTIONS = (
    STAFF,
    SEALED,
    LATEST,
    NOTES,
    BEACONS,
    PEOPLE,
    DIRECTORY,
    LOST_CONTACTS,
    TELEMETRY,
    TOKENS,
    ACCOUNTS,
    AUDIT,
)
