"""The body of POST /detections: what the document says of it, and its items as JSON.

What phones usually send, msgspec reads: all items in the types of `DetectionInput`, no field of
another name, and none twice. Every other body is read as JSON, and `lenient_items` reads its items.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from common import beacon_id
from common.advertisement import MAX_BYTES
from ingest.api.http import bodies, guesses
from ingest.api.http.problems import Problem
from ingest.api.openapi.schema_fields import STAFF_ID, Dbm, GivenRssi, StaffId, StaffText
from ingest.errors import ParameterError
from ingest.rules.request_parameters import (
    EARLIEST,
    EVENT_ID,
    MAX_UNIX_SECONDS,
    TIME_TEXT,
    moment,
)
from ingest.rules.unique_keys import unique_keys

MAX_ITEMS = 1000
# In one moment: as many as stand in a hall at a fair.
MAX_HEARD = 250

Schema = dict[str, Any]

# A number counts as the text of its digits, and an empty text as none.
EventIdText = Annotated[str, Meta(extra_json_schema={"pattern": f"^({EVENT_ID.pattern})?$"})]
TimeText = Annotated[str, Meta(extra_json_schema={"pattern": f"^({TIME_TEXT})?$"})]


BeaconText = Annotated[str, Meta(extra_json_schema={"pattern": f"^{beacon_id.BEACON_TEXT}$"})]
_16_BITS: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": 0xFFFF},
        {"type": "string", "pattern": f"^{beacon_id.NUMBER}$"},
    ]
}


def _hexadecimal(digits: int) -> Schema:
    return {"type": "string", "pattern": f"^[0-9A-Fa-f]{{{digits}}}$"}


def _fields(*kinds: str, **fields: Schema) -> Schema:
    properties = {"kind": {"type": ["string", "null"], "enum": [*kinds, None]}, **fields}
    return {"type": "object", "properties": properties, "required": list(fields)}


_UUID: Schema = {"type": "string", "format": "uuid"}
_URL: Schema = {"type": "string", "pattern": "^https?://[a-z]{1,12}(\\.com)?/?$"}
_NUMBERED = (beacon_id.IBEACON, beacon_id.ALTBEACON)
# The fields of an id, by its kind, as decoders have them.
BeaconFields = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "anyOf": [
                _fields(*_NUMBERED, uuid=_UUID, major=_16_BITS, minor=_16_BITS),
                _fields(
                    beacon_id.EDDYSTONE_UID, namespace=_hexadecimal(20), instance=_hexadecimal(12)
                ),
                _fields(beacon_id.EDDYSTONE_EID, eid=_hexadecimal(16)),
                _fields(beacon_id.EDDYSTONE_URL, url=_URL),
            ]
        }
    ),
]


_BEACON_ID = Meta(
    description="Id of the beacon: its MAC, any case, with or without `:` or `-`; or that of an"
    " iBeacon, an AltBeacon or an Eddystone beacon, as a text or by its fields. Beside `raw`: the"
    " sender's address, or null, or left out"
)
HeardTime = Annotated[
    Annotated[int, Meta(extra_json_schema={"minimum": EARLIEST})]
    | Annotated[float, Meta(extra_json_schema={"minimum": EARLIEST})]
    | TimeText
    | UnsetType
    | None,
    Meta(
        description="When it was heard, by the device's clock: unix seconds, unix"
        " milliseconds or ISO 8601 with a time zone. From 2020 to 24 h ahead of ours. Without"
        " it, the time at which the request came in."
    ),
]
EventId = Annotated[
    EventIdText | float | UnsetType | None,
    Meta(
        description="Any text that names this detection: a UUID, never a counter. A repeat of"
        " the whole item is then stored once; without a timestamp, within 12 hours. Without an"
        " event id, a repeat of the request is a detection of its own."
    ),
]
RawText = Annotated[
    Annotated[str, Meta(extra_json_schema={"pattern": f"^(([0-9A-Fa-f]{{2}}){{1,{MAX_BYTES}}})?$"})]
    | UnsetType
    | None,
    Meta(
        description="The whole advertisement, hexadecimal, instead of the id or beside it: the"
        " beacon is the one that it names, else the sender. `telemetry` of the answer has what"
        " else it tells"
    ),
]


class DetectionInput(Struct, gc=False):
    """One detection; fields of other names are ignored."""

    staff_id: Annotated[int | StaffText, Meta(description=STAFF_ID)]
    mac: Annotated[BeaconText | BeaconFields | None, _BEACON_ID]
    rssi: GivenRssi
    timestamp: HeardTime = UNSET
    event_id: EventId = UNSET
    raw: RawText = UNSET


SentAt = Annotated[
    int | float | TimeText | UnsetType | None,
    Meta(
        description="When this is sent, by the device's clock, in any form of `timestamp`: the"
        " answer's `clock` then tells a clock that is wrong from a backlog, and `/staff`,"
        " `/now` and `/visits` count what was heard at its time by our clock."
    ),
]


class SingleInput(DetectionInput):
    """One detection alone may say when it was sent."""

    sent_at: SentAt = UNSET


# What makes an item a scan; null is none, as everywhere.
HEARD = "heard"


class HeardInput(Struct):
    """One beacon of a scan; fields of other names are ignored."""

    beacon: Annotated[BeaconText | BeaconFields, _BEACON_ID]
    rssi: GivenRssi
    raw: RawText = UNSET


class ScanInput(Struct):
    """All that one phone heard in one moment: one event, of which each beacon is a detection."""

    staff_id: Annotated[int | StaffText, Meta(description=STAFF_ID)]
    heard: Annotated[
        list[HeardInput],
        Meta(
            min_length=1,
            max_length=MAX_HEARD,
            description="Instead of `mac`, `rssi` and `raw`: each beacon that was heard. Of one"
            " that stands there twice the strongest counts",
        ),
    ]
    timestamp: HeardTime = UNSET
    event_id: EventId = UNSET
    sent_at: SentAt = UNSET


class BatchInput(Struct):
    """Many detections; scans may stand among them."""

    detections: Annotated[list[DetectionInput], Meta(max_length=MAX_ITEMS)]
    sent_at: SentAt = UNSET


class ScansInput(Struct):
    """Many scans. A type of its own: a list of either would be another type in clients' code."""

    detections: Annotated[list[ScanInput], Meta(max_length=MAX_ITEMS)]
    sent_at: SentAt = UNSET


class StrictItem(DetectionInput, forbid_unknown_fields=True, gc=False):
    """An item in the types that phones send; `UNSET` is what it does not have."""

    staff_id: StaffId
    mac: str
    rssi: Dbm | None
    event_id: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType | None = UNSET


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    detections: Annotated[list[StrictItem], Meta(max_length=MAX_ITEMS)]
    sent_at: int | float | str | UnsetType | None = UNSET


_BATCHES = msgspec.json.Decoder(_Batch)


class Sent(NamedTuple):
    """What a body has: items, strict or just JSON; whether a single one; when it was sent."""

    items: Sequence[Any]
    single: bool
    at: int | None  # unix seconds, by the device's clock
    fields: tuple[str, ...] = DetectionInput.__struct_fields__  # that an item may have
    meant: dict[str, str] | None = None  # by names beside the items, known ones that are near


def read(body: bytes) -> Sent:
    """Return what a body has. Raises ParameterError and Problem."""
    batch = _read_strictly(body)
    if batch is not None:
        return Sent(batch.detections, single=False, at=_sent_at({"sent_at": batch.sent_at}))
    value = bodies.json_object(body)
    at = _sent_at(value)
    if "detections" not in value:
        value.pop("sent_at", None)
        return Sent([value], single=True, at=at, fields=SingleInput.__struct_fields__)
    items = value["detections"]
    if not isinstance(items, list):
        raise ParameterError("detections", "must be a list")
    count = sum(map(_detections, items))
    if count > MAX_ITEMS:
        raise Problem("too_large", f"{count} detections; at most {MAX_ITEMS} at once")
    meant = guesses.meant(value, BatchInput.__struct_fields__)
    return Sent(items, single=False, at=at, meant=meant)


def _detections(item: Any) -> int:
    """Return how many detections an item is: a scan is as many as it heard beacons."""
    heard = item.get(HEARD) if isinstance(item, dict) else None
    return max(1, len(heard)) if isinstance(heard, list) else 1


def _sent_at(body: Mapping[str, Any]) -> int | None:
    """Return when a body was sent: a clock may say any time."""
    if body.get("sent_at", UNSET) in (UNSET, None, ""):
        return None
    return moment(body, "sent_at", 0, MAX_UNIX_SECONDS)


def _read_strictly(body: bytes) -> _Batch | None:
    """Return a body in which all items are strict and no field stands twice, else None."""
    if not body.isascii() or b"\x7f" in body:  # an event id may hold neither
        return None
    if body.count(b"{") > MAX_ITEMS + 1:  # too many, or some stand in event ids: read with care
        return None
    try:
        batch = _BATCHES.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return batch if unique_keys(body, batch) else None
