"""The items of POST /detections: from JSON to documents, and to what the phone is told of each.

At 500 items a request this is most of what a detection costs. What phones send as a rule, msgspec
reads; `parsing` has the last word on all else, and tells what is wrong with it.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ingest.api.problems import Problem
from ingest.errors import ParameterError
from ingest.recording.outcome import Outcome
from ingest.rules import parameters as parsing
from ingest.rules.strict_json import strict_object
from ingest.storage.directory import UNKNOWN, Snapshot
from ingest.storage.documents import NOWHERE, Document, document
from ingest.web.request_identity import Identity

MAX_ITEMS = 1000
# 2020-01-01: what is older comes from a device that lost its clock.
EARLIEST = 1_577_836_800
REFUSED = [ParameterError("item", "MongoDB refuses this detection")]


class Item(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An item in the types that phones send; `UNSET` is what it does not have."""

    staff_id: int | str
    mac: str
    rssi: Annotated[int, Meta(ge=parsing.RSSI_DBM[0], le=parsing.RSSI_DBM[1])]
    timestamp: int | float | str | UnsetType | None = UNSET
    event_id: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType | None = UNSET


class Odd(Item):
    """An item of other types, or with fields that mean nothing here, read by `parsing`."""

    ignored: str = ""


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    """A request of many."""

    detections: list[Item]


_BATCHES = msgspec.json.Decoder(Batch)
_FIELDS = frozenset(Item.__struct_fields__)


class Understood(NamedTuple):
    """What is to be stored, and what there is to tell of each item."""

    documents: list[Document]
    told: list[tuple[int, str]]  # of each document: the item's index, and most of its result
    wrong: dict[int, list[ParameterError]]  # by the item's index


class _Beacon(NamedTuple):
    mac: str
    place: tuple[str | None, str | None]
    told: str


def read(body: bytes) -> tuple[Sequence[Any], bool]:
    """Return the items of a body, each an `Item` or just JSON, and whether it was a single one."""
    items: Any = _plain(body)
    single = False
    if items is None:
        value = strict_object(body)
        single = "detections" not in value
        items = [value] if single else value["detections"]
    if not isinstance(items, list):
        raise ParameterError("detections", "must be a list")
    if len(items) > MAX_ITEMS:
        raise Problem("too_large", f"{len(items)} detections; at most {MAX_ITEMS} at once")
    return items, single


def _plain(body: bytes) -> list[Item] | None:
    """Return the items of a body in which nothing is odd and no field stands twice, else None."""
    if not body.isascii() or b"\\" in body or b"\x7f" in body:
        return None
    try:
        batch = _BATCHES.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    # There are no escapes: a field that stood twice makes more quotes than there are without it.
    again = msgspec.json.encode(batch)
    return batch.detections if again.count(b'"') == body.count(b'"') else None


def understand(items: Sequence[Any], identity: Identity, directory: Snapshot | None) -> Understood:
    """Make documents of items."""
    found = Understood([], [], {})
    received_at, (name, second) = identity
    arrival = int(received_at)
    latest = arrival + parsing.MAX_FUTURE_SECONDS
    beacons: dict[str, _Beacon] = {}
    for index, item in enumerate(items):
        try:
            if type(item) is not Item or not _fits(item, latest):
                item = _read_by_parsing(item, latest)
            staff_id = _staff_id(item.staff_id)
            beacon = beacons.get(item.mac)
            if beacon is None:
                beacon = beacons[item.mac] = _beacon(item.mac, directory)
        except ParameterError:
            found.wrong[index] = _errors(item, latest)
            continue
        mac, place, told = beacon
        timestamp, event_id = item.timestamp or None, item.event_id
        key = (f"event:{event_id}", timestamp) if event_id else (f"{name}:{index}", second)
        skew = "null" if timestamp is None else arrival - timestamp
        when = arrival if timestamp is None else timestamp
        found.documents.append(document(staff_id, place, when, item.rssi, mac, received_at, key))
        ignored = "" if type(item) is Item else item.ignored
        found.told.append((index, f'{told},"skew_seconds":{skew},{ignored}"errors":[]}}'))
    return found


def tell(found: Understood, statuses: Sequence[Outcome]) -> list[str]:
    """Return the result of each item, as JSON."""
    results = [""] * (len(found.told) + len(found.wrong))
    for index, errors in found.wrong.items():
        results[index] = _rejected(index, errors)
    for (index, told), status in zip(found.told, statuses, strict=True):
        if status is Outcome.REJECTED:
            results[index] = _rejected(index, REFUSED)
        else:
            results[index] = f'{{"index":{index},"status":"{status}",{told}'
    return results


def _fits(item: Item, latest: int) -> bool:
    """Tell whether the time and the event id of an item are as `parsing` would return them."""
    timestamp, event_id = item.timestamp, item.event_id
    if type(timestamp) is int:
        if not EARLIEST <= timestamp <= latest:
            return False
    elif timestamp is not UNSET and timestamp is not None:
        return False
    return not event_id or " " not in event_id


@lru_cache(maxsize=1024, typed=True)
def _staff_id(value: int | str) -> parsing.StaffId:
    return parsing.staff_id({"staff_id": value}, "staff_id")


def _beacon(text: str, directory: Snapshot | None) -> _Beacon:
    mac = parsing.mac({"mac": text}, "mac")
    place = directory.places.get(mac, UNKNOWN) if directory else NOWHERE
    known = directory is not None and mac in directory.beacons
    told = {"mac": mac, "level": place[0], "location": place[1], "known": known}
    return _Beacon(mac, place, json.dumps(told)[1:-1])


def _read_by_parsing(item: Any, latest: int) -> Odd:
    """Return an item of which every value is as it is stored. Raises ParameterError."""
    given = _given(item)
    ignored = sorted(name[:64] for name in given.keys() - _FIELDS)[:10]
    return Odd(
        staff_id=parsing.staff_id(given, "staff_id"),
        mac=parsing.mac(given, "mac"),
        rssi=parsing.integer(given, "rssi", *parsing.RSSI_DBM),
        timestamp=_device_time(given, latest),
        event_id=parsing.event_id(given),
        ignored=f'"ignored":{json.dumps(ignored)},' if ignored else "",
    )


def _given(item: Any) -> dict[str, Any]:
    given = msgspec.to_builtins(item) if isinstance(item, Item) else item
    if not isinstance(given, dict):
        raise ParameterError("item", "must be a JSON object")
    return given


def _device_time(item: dict[str, Any], latest: int) -> int | None:
    if item.get("timestamp") in (None, ""):
        return None
    return parsing.moment(item, "timestamp", EARLIEST, latest)


def _errors(item: Any, latest: int) -> list[ParameterError]:
    """Return everything that is wrong with an item."""
    try:
        given = _given(item)
    except ParameterError as error:
        return [error]
    errors = []
    for look in (
        lambda: parsing.staff_id(given, "staff_id"),
        lambda: parsing.mac(given, "mac"),
        lambda: parsing.integer(given, "rssi", *parsing.RSSI_DBM),
        lambda: _device_time(given, latest),
        lambda: parsing.event_id(given),
    ):
        try:
            look()
        except ParameterError as error:
            errors.append(error)
    return errors


def _rejected(index: int, errors: Sequence[ParameterError]) -> str:
    named = [{"field": error.parameter, "reason": error.reason} for error in errors]
    return json.dumps({"index": index, "status": "rejected", "errors": named})
