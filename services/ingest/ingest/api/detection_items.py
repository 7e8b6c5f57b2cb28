"""The items of POST /detections: from JSON to documents, and to the result of each.

At 500 items a request this is most of what a detection costs. What phones usually send, msgspec
reads; `parameters` reads everything else, and says what is wrong with it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ingest.api.detection_input import EARLIEST, MAX_ITEMS, DetectionInput
from ingest.api.detection_results import DetectionResult, ItemError
from ingest.api.problems import Problem
from ingest.api.readers import Reader, read_all
from ingest.errors import ParameterError
from ingest.http import request_identity
from ingest.recording.recorder import Outcome
from ingest.rules import parameters
from ingest.rules import parameters as strict_json
from ingest.rules.parameters import StaffId
from ingest.rules.unique_keys import unique_keys
from ingest.storage.detections import NOWHERE, Document, document
from ingest.storage.directory import UNKNOWN, Snapshot

REFUSED = [ParameterError("item", "MongoDB refuses this detection")]


class StrictItem(DetectionInput, forbid_unknown_fields=True, gc=False):
    """An item in the types that phones send; `UNSET` is what it does not have."""


class LenientItem(NamedTuple):
    """An item of other types, or with fields of other names, as `parameters` reads it."""

    staff_id: StaffId
    mac: str
    rssi: int
    timestamp: int | None
    event_id: str | None
    ignored: list[str] | UnsetType


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    detections: Annotated[list[StrictItem], Meta(max_length=MAX_ITEMS)]


class ParsedBatch(NamedTuple):
    """The documents to store, their results without a status, and what is wrong with the rest."""

    documents: list[Document]
    accepted: list[DetectionResult]  # one for each document
    errors: dict[int, list[ParameterError]]  # by the item's index


class _Beacon(NamedTuple):
    mac: str
    place: tuple[str | None, str | None]
    known: bool


_BATCHES = msgspec.json.Decoder(_Batch)
_FIELDS = frozenset(DetectionInput.__struct_fields__)


def read(body: bytes) -> tuple[Sequence[Any], bool]:
    """Return the items of a body, each strict or just JSON, and whether it was a single one."""
    items: Any = _read_strictly(body)
    single = False
    if items is None:
        value = strict_json.strict_object(body)
        single = "detections" not in value
        items = [value] if single else value["detections"]
    if not isinstance(items, list):
        raise ParameterError("detections", "must be a list")
    if len(items) > MAX_ITEMS:
        raise Problem("too_large", f"{len(items)} detections; at most {MAX_ITEMS} at once")
    return items, single


def _read_strictly(body: bytes) -> list[StrictItem] | None:
    """Return the items of a body in which all are strict and no field stands twice, else None."""
    if not body.isascii() or b"\x7f" in body:  # an event id may hold neither
        return None
    try:
        batch = _BATCHES.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return batch.detections if unique_keys(body, batch) else None


def parse(items: Sequence[Any], received_at: float, directory: Snapshot | None) -> ParsedBatch:
    """Make documents of items; the directory is None while it cannot be read."""
    batch = ParsedBatch([], [], {})
    arrival = int(received_at)
    latest = arrival + parameters.MAX_FUTURE_SECONDS
    readers = _readers(latest)
    name, second = request_identity.request_key(received_at)
    beacons: dict[str, _Beacon] = {}
    for index, item in enumerate(items):
        try:
            if type(item) is not StrictItem or not _is_plain(item, latest):
                item = _read_leniently(item, readers)
            staff_id = _staff_id(item.staff_id)
            beacon = beacons.get(item.mac)
            if beacon is None:
                beacon = beacons[item.mac] = _beacon(item.mac, directory)
        except ParameterError:
            batch.errors[index] = _errors(item, readers)
            continue
        mac, place, known = beacon
        timestamp, event_id = item.timestamp or None, item.event_id
        key = (f"event:{event_id}", timestamp) if event_id else (f"{name}:{index}", second)
        when = arrival if timestamp is None else timestamp
        batch.documents.append(document(staff_id, place, when, item.rssi, mac, received_at, key))
        batch.accepted.append(
            DetectionResult(
                index=index,
                status="",
                mac=mac,
                level=place[0],
                location=place[1],
                known=known,
                skew_seconds=None if timestamp is None else arrival - timestamp,
                ignored=UNSET if type(item) is StrictItem else item.ignored,
                errors=(),
            )
        )
    return batch


def describe(batch: ParsedBatch, outcomes: Sequence[Outcome]) -> list[DetectionResult]:
    """Return the result of each item, by its index."""
    results = []
    for result, outcome in zip(batch.accepted, outcomes, strict=True):
        result.status = outcome
        results.append(
            result if outcome is not Outcome.REJECTED else _rejected(result.index, REFUSED)
        )
    for index, errors in sorted(batch.errors.items()):
        results.insert(index, _rejected(index, errors))
    return results


def _is_plain(item: StrictItem, latest: int) -> bool:
    """Return whether the time and the event id of an item are as `parameters` returns them."""
    timestamp, event_id = item.timestamp, item.event_id
    if type(timestamp) is int:
        if not EARLIEST <= timestamp <= latest:
            return False
    elif timestamp is not UNSET and timestamp is not None:
        return False
    return not event_id or " " not in event_id


@lru_cache(maxsize=1024, typed=True)
def _staff_id(value: StaffId) -> StaffId:
    return parameters.staff_id({"staff_id": value}, "staff_id")


def _beacon(text: str, directory: Snapshot | None) -> _Beacon:
    mac = parameters.mac({"mac": text}, "mac")
    place = directory.places.get(mac, UNKNOWN) if directory else NOWHERE
    return _Beacon(mac, place, directory is not None and mac in directory.beacons)


def _readers(latest: int) -> dict[str, Reader]:
    """Return how each field of an item is read; a time may be `latest` (unix seconds)."""
    low, high = parameters.RSSI_DBM
    return {
        "staff_id": parameters.staff_id,
        "mac": parameters.mac,
        "rssi": partial(parameters.integer, low=low, high=high),
        "timestamp": partial(_device_time, latest=latest),
        "event_id": lambda given, _: parameters.event_id(given),
    }


def _device_time(given: Mapping[str, Any], name: str, latest: int) -> int | None:
    if given.get(name) in (None, ""):
        return None
    return parameters.moment(given, name, EARLIEST, latest)


def _read_leniently(item: Any, readers: Mapping[str, Reader]) -> LenientItem:
    """Return an item with every value as it is stored. Raises ParameterError."""
    given = _fields(item)
    values, errors = read_all(readers, given)
    if errors:
        raise errors[0]
    ignored = sorted(name[:64] for name in given.keys() - _FIELDS)[:10]
    # What Python's JSON reads but no UTF-8 can hold is answered as a question mark.
    texts = [name.encode("utf-8", "replace").decode() for name in ignored]
    return LenientItem(**values, ignored=texts or UNSET)


def _fields(item: Any) -> dict[str, Any]:
    given = msgspec.to_builtins(item) if isinstance(item, StrictItem) else item
    if not isinstance(given, dict):
        raise ParameterError("item", "must be a JSON object")
    return given


def _errors(item: Any, readers: Mapping[str, Reader]) -> list[ParameterError]:
    """Return everything that is wrong with an item."""
    try:
        return read_all(readers, _fields(item))[1]
    except ParameterError as error:
        return [error]


def _rejected(index: int, errors: Sequence[ParameterError]) -> DetectionResult:
    named = tuple(ItemError(error.parameter, error.reason) for error in errors)
    return DetectionResult(index=index, status=Outcome.REJECTED, errors=named)
