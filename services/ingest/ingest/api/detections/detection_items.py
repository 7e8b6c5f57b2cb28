"""The items of POST /detections: from what was sent to documents, and to the result of each.

At 500 items a request this is most of what a detection costs: one loop, few calls an item.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import UNSET

from ingest.api.detections import lenient_items
from ingest.api.detections.detection_input import Sent, StrictItem
from ingest.api.detections.detection_results import DetectionResult, ItemError
from ingest.api.http import guesses
from ingest.errors import Fault, ParameterError
from ingest.recording.outcome import Outcome
from ingest.rules import request_parameters
from ingest.rules.detection_identity import event_key
from ingest.rules.request_parameters import EARLIEST, StaffId
from ingest.storage.detections.documents import NOWHERE, Document, document
from ingest.storage.directory.directory import UNKNOWN, Snapshot
from ingest.web.request_identity import Identity

# Of so many bad items everything is said that is wrong with them, of further ones the first thing;
# of so many items, what was meant by fields that are ignored.
MAX_EXPLAINED = 100
_REFUSED = [Fault("item", "MongoDB refuses this detection")]


class ParsedBatch(NamedTuple):
    """The documents to store, their results without a status, and what is wrong with the rest."""

    documents: list[Document]
    accepted: list[DetectionResult]  # one for each document
    faults: dict[int, list[Fault]]  # by the item's index


class _Beacon(NamedTuple):
    mac: str
    place: tuple[str | None, str | None]
    known: bool


def parse(sent: Sent, identity: Identity, directory: Snapshot | None) -> ParsedBatch:
    """Make documents of items; the directory is None while it cannot be read."""
    batch = ParsedBatch([], [], {})
    received_at, (request, second) = identity
    arrival = int(received_at)
    latest = arrival + request_parameters.MAX_FUTURE_SECONDS
    readers = lenient_items.readers(latest)
    beacons: dict[str, _Beacon] = {}
    for index, item in enumerate(sent.items):
        try:
            if type(item) is not StrictItem or not _is_plain(item, latest):
                item = lenient_items.read(item, readers)
            staff_id = _staff_id(item.staff_id)
            beacon = beacons.get(item.mac)
            if beacon is None:
                beacon = beacons[item.mac] = _beacon(item.mac, directory)
        except ParameterError as error:
            every = len(batch.faults) < MAX_EXPLAINED
            faults = lenient_items.faults_of(item, readers, sent.fields) if every else [error.fault]
            batch.faults[index] = faults
            continue
        mac, place, known = beacon
        timestamp, event_id = item.timestamp or None, item.event_id
        key = event_key(event_id, timestamp) if event_id else (f"{request}:{index}", second)
        when = arrival if timestamp is None else timestamp
        rssi = item.rssi or None  # 0 is not known
        batch.documents.append(document(staff_id, place, when, rssi, mac, received_at, key))
        is_strict = type(item) is StrictItem
        ignored = UNSET if is_strict else item.ignored
        batch.accepted.append(
            DetectionResult(
                index=index,
                status="",
                mac=mac,
                level=place[0],
                location=place[1],
                known=known,
                skew_seconds=None if timestamp is None else arrival - timestamp,
                ignored=ignored,
                did_you_mean=UNSET
                if ignored is UNSET or index >= MAX_EXPLAINED
                else guesses.meant(ignored, sent.fields) or UNSET,
                telemetry=UNSET if is_strict else item.telemetry,
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
            result if outcome is not Outcome.REJECTED else _rejected(result.index, _REFUSED)
        )
    for index, faults in sorted(batch.faults.items()):
        results.insert(index, _rejected(index, faults))
    return results


def _rejected(index: int, faults: Sequence[Fault]) -> DetectionResult:
    named = tuple(ItemError(*fault) for fault in faults)
    return DetectionResult(index=index, status=Outcome.REJECTED, errors=named)


def _is_plain(item: StrictItem, latest: int) -> bool:
    """Return whether the time and the event id of an item need no lenient reading."""
    timestamp, event_id = item.timestamp, item.event_id
    if item.raw is not UNSET:
        return False
    if type(timestamp) is int:
        if not EARLIEST <= timestamp <= latest:
            return False
    elif timestamp is not UNSET and timestamp is not None:
        return False
    return not event_id or " " not in event_id


@lru_cache(maxsize=1024, typed=True)
def _staff_id(value: StaffId) -> StaffId:
    return request_parameters.staff_id({"staff_id": value}, "staff_id")


def _beacon(text: str, directory: Snapshot | None) -> _Beacon:
    mac = request_parameters.beacon({"mac": text}, "mac")
    place = directory.places.get(mac, UNKNOWN) if directory else NOWHERE
    return _Beacon(mac, place, directory is not None and mac in directory.beacons)
