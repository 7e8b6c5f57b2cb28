"""Scans: all that a phone heard in one moment, as one item of POST /detections.

Each beacon becomes a detection of the same person, time and event, so a repeat of the whole scan
meets each of them, and all of them together say where somebody is.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from msgspec import UNSET, UnsetType

from ingest.api.detections import lenient_items
from ingest.api.detections.detection_input import HEARD, MAX_HEARD, HeardInput, ScanInput
from ingest.api.http.readers import Reader, read_all
from ingest.errors import Fault, ParameterError
from ingest.rules.request_parameters import StaffId

_OF_ONE_BEACON = ("mac", "rssi", "raw")
_FIELDS = frozenset(ScanInput.__struct_fields__)
_HEARD_FIELDS = frozenset(HeardInput.__struct_fields__)


class HeardBeacon(NamedTuple):
    """A beacon of a scan; the strength in dBm, None where it is not known."""

    mac: str
    rssi: int | None
    telemetry: dict[str, float] | UnsetType


class Scan(NamedTuple):
    """What is good of a scan: each beacon once, with the names that mean nothing in it."""

    staff_id: StaffId
    timestamp: int | None
    event_id: str | None
    beacons: list[HeardBeacon]
    ignored: list[str] | UnsetType


def is_scan(item: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether an item is a scan."""
    return isinstance(item, dict) and item.get(HEARD) is not None


def read(item: dict[str, Any], readers: Mapping[str, Reader]) -> tuple[Scan | None, list[Fault]]:
    """Return a scan, and what is wrong with it: None where nothing of it can be stored.

    One bad beacon takes the others of the moment with it no more than one bad item does its batch.
    """
    event, faults = read_all(
        {name: readers[name] for name in ("staff_id", "timestamp", "event_id")}, item, _FIELDS
    )
    faults += [
        Fault(name, f"must stand in each item of `{HEARD}`, not beside it")
        for name in _OF_ONE_BEACON
        if item.get(name) not in (None, "")
    ]
    beacons: dict[str, HeardBeacon] = {}
    bad = []
    for beacon in _heard(item[HEARD], readers):
        if isinstance(beacon, Fault):
            bad.append(beacon)
        elif beacon.mac in beacons:
            beacons[beacon.mac] = _together(beacons[beacon.mac], beacon)
        else:
            beacons[beacon.mac] = beacon
    if faults or not beacons:
        return None, faults + bad
    ignored = lenient_items.ignored(_unknown(item))
    return Scan(**event, beacons=list(beacons.values()), ignored=ignored), bad


def _heard(entries: object, readers: Mapping[str, Reader]) -> Iterator[HeardBeacon | Fault]:
    """Yield each beacon, or the first thing that is wrong with it."""
    if not isinstance(entries, list) or not entries:
        yield Fault(HEARD, "must be a list of the beacons that were heard")
        return
    if len(entries) > MAX_HEARD:
        yield Fault(HEARD, f"must have at most {MAX_HEARD} beacons, not {len(entries)}")
        return
    for index, entry in enumerate(entries):
        try:
            fields, telemetry = lenient_items.identified(entry, "beacon")
            mac, rssi = readers["mac"](fields, "beacon"), readers["rssi"](fields, "rssi")
        except ParameterError as error:
            field, reason = error.fault
            if field == "beacon" and isinstance(entry, dict) and "beacon" not in entry:
                reason += ": in a scan it is not called mac" if "mac" in entry else ""
            yield Fault(f"{HEARD}[{index}]" + (f".{field}" if field != "item" else ""), reason)
        else:
            yield HeardBeacon(mac, rssi, telemetry)


def _together(beacon: HeardBeacon, again: HeardBeacon) -> HeardBeacon:
    """Return a beacon that was heard twice: the stronger, with what both told."""
    first, second = (again, beacon) if _is_stronger(again, beacon) else (beacon, again)
    telemetry = (second.telemetry or {}) | (first.telemetry or {})
    return first._replace(telemetry=telemetry or UNSET)


def _is_stronger(beacon: HeardBeacon, other: HeardBeacon) -> bool:
    return beacon.rssi is not None and (other.rssi is None or beacon.rssi > other.rssi)


def _unknown(item: dict[str, Any]) -> Iterator[str]:
    """Yield the names of a scan that nobody knows."""
    yield from item.keys() - _FIELDS - set(_OF_ONE_BEACON)
    for index, entry in enumerate(item[HEARD]):
        if isinstance(entry, dict):
            yield from (f"{HEARD}[{index}].{name}" for name in entry.keys() - _HEARD_FIELDS)
