"""The indexes of the collection `staff`."""

from pymongo import DESCENDING, IndexModel

_BY_BEACON = IndexModel(
    [("mac", 1), ("level", 1), ("location", 1), ("timestamp", DESCENDING), ("staff_id", 1)]
)
# Covers who was where last, the unknown beacons, and what a correction has to change.
BY_BEACON: str = _BY_BEACON.document["name"]
INDEXES = [
    # A history, read from the index alone.
    IndexModel([("staff_id", 1), ("timestamp", DESCENDING), ("level", 1), ("location", 1)]),
    # The last 15 minutes.
    IndexModel([("timestamp", DESCENDING)]),
    _BY_BEACON,
]
