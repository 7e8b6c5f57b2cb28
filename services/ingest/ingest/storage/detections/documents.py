"""Detections as documents: what is stored, and what leaves storage, always whole."""

import datetime
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import bson
from bson import ObjectId

from ingest.rules.detection_identity import IdempotencyKey, detection_id
from ingest.rules.request_parameters import (
    FIRST_MILLISECONDS,
    MAX_EXACT,
    MAX_FUTURE_SECONDS,
    MAX_UNIX_SECONDS,
    RIGHT_SECONDS,
    RSSI_DBM,
    StaffId,
)

# Opaque outside of storage, but for `level` and `location`, which the recorder may have to fill in.
Document = dict[str, Any]
# The place of a detection that came while the directory could not be read.
NOWHERE = (None, None)
# What an older database may lack.
UNKNOWN, NO_MAC = "unknown", "000000000000"
# How many bytes of an `_id` are kept for good, the first (mostly the time) and the last: those
# between are alike in all that the driver of another program named. What is told is made of these.
FIRST_OF_ID, LAST_OF_ID = 4, 2
KEPT_OF_ID = FIRST_OF_ID + LAST_OF_ID
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - what the driver reads has no zone
# When a detection counts as heard, in MongoDB's words: as `Detection.heard_at`.
_RECEIVED = {"$convert": {"input": "$received_at", "to": "long", "onError": None, "onNull": None}}
_BY_CLOCK = {"$ifNull": ["$heard", "$timestamp"]}
HEARD = {"$min": [_BY_CLOCK, {"$floor": {"$divide": [_RECEIVED, 1000]}}]}


class Detection(NamedTuple):
    """A detection as it leaves storage: every field present, whatever an older version stored."""

    id: str  # 24 hexadecimal digits
    staff_id: StaffId
    mac: str
    rssi: int | None  # dBm, None where it is not known
    timestamp: int  # unix seconds
    heard_at: int  # the same by our clock, as far as it is known; never after it came
    received_at: float  # unix seconds
    level: str
    location: str


def document(
    staff_id: StaffId,
    place: tuple[str | None, str | None],
    timestamp: int,
    rssi: int | None,
    mac: str,
    received_at: float,
    key: IdempotencyKey,
) -> Document:
    """Return what is stored of one detection; times in unix seconds, rssi in dBm.

    `place` is level and location, `NOWHERE` while the directory cannot be read. `received_at` is
    stored as a date so that a TTL index can use it: rows that go are seen to be gone in a minute.
    `heard` is stored where the clock is known to be wrong.
    """
    fields = {
        "_id": ObjectId(detection_id(staff_id, mac, key)),
        "staff_id": staff_id,
        "level": place[0],
        "location": place[1],
        "timestamp": timestamp,
        "rssi": rssi,
        "mac": mac,
        "received_at": _date(received_at),
    }
    if timestamp - received_at > RIGHT_SECONDS:
        fields["heard"] = int(received_at)
    return fields


def correct(row: Document, sent_at: int) -> None:
    """Let a document count as heard by our clock; `sent_at`: when it was sent, by the device's.

    Nobody sends what he has yet to hear, or of a clock too far ahead: such a time says nothing.
    """
    received_at = int(row["received_at"].timestamp())
    behind = received_at - sent_at
    is_wrong = behind > RIGHT_SECONDS or -MAX_FUTURE_SECONDS <= behind < -RIGHT_SECONDS
    if is_wrong and row["timestamp"] <= sent_at + RIGHT_SECONDS:
        row["heard"] = min(row["timestamp"] + behind, received_at)


@lru_cache(1)  # a batch has one
def _date(unix_seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(unix_seconds, datetime.UTC)


def detection(row: Mapping[str, Any]) -> Detection:
    """Return a document of `staff`, or an entry of `latest`, with every field as it should be."""
    timestamp = unix_seconds(row.get("timestamp"))
    received_at = row.get("received_at")
    received = (
        (
            received_at.replace(tzinfo=None) - _EPOCH
        ).total_seconds()  # three times as quick as of UTC
        if isinstance(received_at, datetime.datetime)
        else float(timestamp)
    )
    person = staff_id(row.get("staff_id"))
    mac, rssi = text(row.get("mac"), NO_MAC), strength(row.get("rssi"))
    return Detection(
        id=told_id(_kept(row["_id"] if "_id" in row else row.get("id")), person, mac, rssi),
        staff_id=person,
        mac=mac,
        rssi=rssi,
        timestamp=timestamp,
        heard_at=min(unix_seconds(row.get("heard", timestamp)), int(received)),
        received_at=received,
        level=text(row.get("level"), UNKNOWN),
        location=text(row.get("location"), UNKNOWN),
    )


def told_id(kept: bytes, person: StaffId, mac: str, rssi: int | None) -> str:
    """Return by which 24 digits a detection is known outside: rows and blocks have the same.

    `kept`: what is kept of its `_id`. What has that in common with another of the same person and
    second, and beacon and strength too, is the same detection.
    """
    return kept.hex() + id_digest(person, mac, rssi)


@lru_cache(4096)  # of somebody's beacons, at some 60 strengths
def id_digest(person: StaffId, mac: str, rssi: int | None) -> str:
    """Return the digits of `told_id` that follow those of what is kept."""
    return blake2b(f"{person} {mac} {rssi}".encode(), digest_size=12 - KEPT_OF_ID).hexdigest()


def _kept(id_: Any) -> bytes:
    """Return what is kept of an `_id`; another program may have stored one of another kind."""
    if not isinstance(id_, ObjectId):
        return blake2b(repr(id_).encode(), digest_size=KEPT_OF_ID).digest()
    name = id_.binary
    return name[:FIRST_OF_ID] + name[-LAST_OF_ID:]


def is_timeless(row: Document) -> bool:
    """Tell whether the name of a document holds no time: a repeat may come with another one."""
    if not isinstance(row["_id"], ObjectId):
        return False
    named = int.from_bytes(row["_id"].binary[:FIRST_OF_ID], "big")
    if named == row["timestamp"]:  # as nearly always
        return False
    known = detection(row)
    return named not in (known.timestamp, int(known.received_at))


def received_seconds(row: Document) -> float:
    """Return when a detection came that is to be stored, in unix seconds."""
    received_at: datetime.datetime = row["received_at"]
    return received_at.replace(tzinfo=datetime.UTC).timestamp()


def whole(row: Document) -> Document:
    """Return a stored document with every field as `document` would have stored it."""
    complete = detection(row)._asdict()
    del complete["id"]
    heard_at = complete.pop("heard_at")
    received_at = datetime.datetime.fromtimestamp(complete["received_at"], datetime.UTC)
    heard = {"heard": heard_at} if "heard" in row else {}
    return {"_id": row["_id"]} | complete | {"received_at": received_at} | heard


def has_staff_and_time(row: Document) -> bool:
    """Tell whether a stored document is somebody's, and of some time: it can be his latest."""
    timed = isinstance(row.get("timestamp"), int | float | datetime.datetime)
    return timed and staff_id(row.get("staff_id")) != UNKNOWN


def staff_id(value: Any) -> StaffId:
    """Return a stored staff id; the driver reads large numbers as a type of its own."""
    if isinstance(value, str):
        return value
    number = whole_number(value, -1)
    if number < 0 or number != value:
        return UNKNOWN
    return number if number <= MAX_EXACT else str(number)


def valid_staff_ids(stored: Iterable[Any]) -> list[StaffId]:
    """Return staff ids as they are here, without rows that are nobody's."""
    staff_ids = dict.fromkeys(staff_id(value) for value in stored if value is not None)
    return [known for known in staff_ids if known != UNKNOWN]


def unix_seconds(value: Any) -> int:
    """Return a stored time in unix seconds: an older database may hold milliseconds or a date."""
    if type(value) is int and 0 <= value < FIRST_MILLISECONDS:  # as nearly always
        return value
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=datetime.UTC).timestamp()
    seconds = whole_number(value, 0)
    if seconds >= FIRST_MILLISECONDS:
        seconds //= 1000
    return min(max(seconds, 0), MAX_UNIX_SECONDS)


def strength(value: Any) -> int | None:
    """Return a stored strength; None where it is not known, as an older database's 0 or 127."""
    dbm, (low, high) = whole_number(value, 0), RSSI_DBM
    return dbm if dbm and low <= dbm <= high else None


def text(value: Any, default: str) -> str:
    """Return a stored text, a whole number as text too, or the default for what is neither."""
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, int) else default


def whole_number(value: Any, default: int) -> int:
    """Return a stored number as a whole one, or the default for what is none."""
    if isinstance(value, int):
        return int(value)
    return int(value) if isinstance(value, float) and math.isfinite(value) else default


class DamagedDocument(Exception):
    """Bytes are not those that were stored."""


def encoded(row: Document) -> bytes:
    """Return a document as bytes, for the spool; a checksum ends them."""
    whole = bson.encode(row)
    return whole + _checksum(whole)


def decoded(stored: bytes) -> Document:
    """Return the document of `encoded`, also of a version without checksums. DamagedDocument."""
    try:
        size = int.from_bytes(stored[:4], "little")  # with which BSON begins
        whole, checksum = stored[:size], stored[size:]
        row = bson.decode(whole)
        row["staff_id"] = staff_id(row["staff_id"])  # of an older release, a large number
    except Exception as error:
        raise DamagedDocument(str(error)) from error
    if checksum and checksum != _checksum(whole):
        raise DamagedDocument("its checksum is another")
    if not checksum and not _is_detection(row):
        raise DamagedDocument("it is no detection")
    return row


# A staff id as BSON has it: a number of 4 or 8 bytes, or the length of a text and the text.
_STAFF_ID = re.compile(
    rb"\x10staff_id\0(?P<short>.{4})|\x12staff_id\0(?P<long>.{8})"
    rb"|\x02staff_id\0.{4}(?P<text>[A-Za-z0-9._-]{1,64})\0",
    re.DOTALL,
)


def staff_ids_within(stored: Any) -> Iterator[tuple[StaffId, slice]]:
    """Yield each staff id that stands in damaged bytes, and where."""
    for match in _STAFF_ID.finditer(stored):
        kind = str(match.lastgroup)
        value = match[kind]
        known = value.decode() if kind == "text" else int.from_bytes(value, "little", signed=True)
        yield staff_id(known), slice(*match.span(kind))


def _checksum(whole: bytes) -> bytes:
    return zlib.crc32(whole).to_bytes(4, "little")


_TYPES: dict[str, Any] = {
    "_id": ObjectId,
    "staff_id": int | str,
    "level": str | None,
    "location": str | None,
    "timestamp": int,
    "rssi": int | None,
    "mac": str,
    "received_at": datetime.datetime,
}


def _is_detection(row: Document) -> bool:
    return row.keys() == _TYPES.keys() and all(
        isinstance(row[name], kind) for name, kind in _TYPES.items()
    )


def key_bytes(row: Document) -> bytes:
    """Return the 12 bytes that name a document."""
    identity: ObjectId = row["_id"]
    return identity.binary
