"""The items of POST /detections: from what was sent to documents, and to the result of each.

At 500 items a request this is most of what a detection costs: one loop, few calls an item.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import UNSET

from ingest.api.detections import lenient_items, scans
from ingest.api.detections.detection_input import Sent, StrictItem
from ingest.api.detections.detection_results import DetectionResult, HeardResult, ItemError
from ingest.api.http import guesses
from ingest.api.http.readers import Reader
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
# Of a scan the last of these counts that became of one of its beacons.
_ORDER = [
    Outcome.DUPLICATE,
    Outcome.STORED,
    Outcome.QUEUED,
    Outcome.REJECTED,
    Outcome.UNAVAILABLE,
]
_REFUSED = [Fault("item", "MongoDB refuses this detection")]


class ParsedBatch(NamedTuple):
    """The documents to store, their results without a status, and what is wrong with the rest."""

    documents: list[Document]
    accepted: list[DetectionResult]  # one for each document; those of a scan have one together
    faults: dict[int, list[Fault]]  # by the item's index
    telemetry: list[tuple[int, dict[str, float]]]  # with the index of its document


class _Beacon(NamedTuple):
    mac: str
    place: tuple[str | None, str | None]
    known: bool


def parse(sent: Sent, identity: Identity, directory: Snapshot | None) -> ParsedBatch:
    """Make documents of items; the directory is None while it cannot be read."""
    batch = ParsedBatch([], [], {}, [])
    received_at, (request, second) = identity
    arrival = int(received_at)
    latest = arrival + request_parameters.MAX_FUTURE_SECONDS
    readers = lenient_items.readers(latest)
    beacons: dict[str, _Beacon] = {}
    for index, item in enumerate(sent.items):
        try:
            if type(item) is not StrictItem or not _is_plain(item, latest):
                if scans.is_scan(item):
                    _add_scan(batch, index, item, readers, identity, directory)
                    continue
                item = lenient_items.read(item, readers)
                if item.telemetry:
                    batch.telemetry.append((len(batch.documents), item.telemetry))
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
        if result.status:  # of a scan: what is to be done about one of its beacons is for all
            result.status = max(Outcome(result.status), outcome, key=_ORDER.index)
        else:
            result.status = outcome
            results.append(result)
    results = [
        result if result.status != Outcome.REJECTED else _rejected(result.index, _REFUSED)
        for result in results
    ]
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


def _add_scan(
    batch: ParsedBatch,
    index: int,
    item: dict[str, Any],
    readers: Mapping[str, Reader],
    identity: Identity,
    directory: Snapshot | None,
) -> None:
    """Add the documents of a scan and their one result, or what is wrong with all of it."""
    scan, faults = scans.read(item, readers)
    if scan is None:
        batch.faults[index] = faults if len(batch.faults) < MAX_EXPLAINED else faults[:1]
        return
    received_at, (request, second) = identity
    timestamp, arrival = scan.timestamp, int(received_at)
    key = event_key(scan.event_id, timestamp) if scan.event_id else (f"{request}:{index}", second)
    when = arrival if timestamp is None else timestamp
    heard = []
    for mac, rssi, telemetry in scan.beacons:
        beacon = _beacon(mac, directory)
        if telemetry:
            batch.telemetry.append((len(batch.documents), telemetry))
        batch.documents.append(
            document(scan.staff_id, beacon.place, when, rssi, mac, received_at, key)
        )
        heard.append(HeardResult(mac, *beacon.place, beacon.known, telemetry))
    result = DetectionResult(
        index=index,
        status="",
        heard=heard,
        skew_seconds=None if timestamp is None else arrival - timestamp,
        ignored=scan.ignored,
        errors=tuple(ItemError(*fault) for fault in faults),
    )
    batch.accepted.extend([result] * len(heard))


@lru_cache(maxsize=1024, typed=True)
def _staff_id(value: StaffId) -> StaffId:
    return request_parameters.staff_id({"staff_id": value}, "staff_id")


def _beacon(text: str, directory: Snapshot | None) -> _Beacon:
    mac = request_parameters.beacon({"mac": text}, "mac")
    place = directory.places.get(mac, UNKNOWN) if directory else NOWHERE
    return _Beacon(mac, place, directory is not None and mac in directory.places)
