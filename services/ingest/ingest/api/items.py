"""The items of POST /detections: from JSON to detections, and to what the phone is told of each."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ingest import parsing, receipt
from ingest.detections import Detection, IdempotencyKey
from ingest.directory import UNKNOWN, Snapshot
from ingest.errors import ParameterError

# 2020-01-01: what is older comes from a device that lost its clock.
EARLIEST = 1_577_836_800
REFUSED = [ParameterError("item", "MongoDB refuses this detection")]
_FIELDS = frozenset({"staff_id", "mac", "rssi", "timestamp", "event_id"})
_LOUDNESS = range(parsing.RSSI_DBM[0], parsing.RSSI_DBM[1] + 1)


class Understood(NamedTuple):
    """The items of a request: the good ones with their index, and what is wrong with the others."""

    detections: list[Detection]
    indexes: list[int]
    wrong: dict[int, list[ParameterError]]


@lru_cache(maxsize=1024, typed=True)
def _staff_id(value: object) -> parsing.StaffId:
    return parsing.staff_id({"staff_id": value}, "staff_id")


@lru_cache(maxsize=1024, typed=True)
def _mac(value: object) -> str:
    return parsing.mac({"mac": value}, "mac")


def understand(items: Sequence[Any], received_at: float, directory: Snapshot | None) -> Understood:
    """Parse items. A plain loop: at 500 items a request it is most of what a detection costs."""
    found = Understood([], [], {})
    arrival = int(received_at)
    request = receipt.request_key(received_at)
    believed = range(EARLIEST, arrival + parsing.MAX_FUTURE_SECONDS + 1)
    places = directory.places if directory else None
    level = location = None
    for index, item in enumerate(items):
        try:
            staff_id = _staff_id(item["staff_id"])
            mac = _mac(item["mac"])
            rssi = item["rssi"]
            if type(rssi) is not int or rssi not in _LOUDNESS:
                rssi = parsing.integer(item, "rssi", *parsing.RSSI_DBM)
            timestamp = item.get("timestamp")
            if type(timestamp) is not int or timestamp not in believed:
                timestamp = _device_time(item, believed)
            event_id = item.get("event_id")
            if type(event_id) is not str or not parsing.EVENT_ID.fullmatch(event_id):
                event_id = parsing.event_id(item)
            if event_id is None:
                key = IdempotencyKey(f"{request.text}:{index}", request.seconds)
            else:
                key = IdempotencyKey(f"event:{event_id}", timestamp)
        except (ParameterError, KeyError, TypeError, AttributeError):
            found.wrong[index] = _errors(item, believed)
            if not found.wrong[index]:
                raise
            continue
        if places is not None:
            level, location = places.get(mac, UNKNOWN)
        when = arrival if timestamp is None else timestamp
        found.detections.append(
            Detection(staff_id, level, location, when, rssi, mac, received_at, key)
        )
        found.indexes.append(index)
    return found


def _device_time(item: Mapping[str, Any], believed: range) -> int | None:
    if item.get("timestamp") in (None, ""):
        return None
    return parsing.moment(item, "timestamp", believed[0], believed[-1])


def _errors(item: Any, believed: range) -> list[ParameterError]:
    """Return everything that is wrong with an item."""
    if not isinstance(item, dict):
        return [ParameterError("item", "must be a JSON object")]
    errors = []
    for read in (
        lambda: parsing.staff_id(item, "staff_id"),
        lambda: parsing.mac(item, "mac"),
        lambda: parsing.integer(item, "rssi", *parsing.RSSI_DBM),
        lambda: _device_time(item, believed),
        lambda: parsing.event_id(item),
    ):
        try:
            read()
        except ParameterError as error:
            errors.append(error)
    return errors


def tell(
    results: list[str],
    found: Understood,
    statuses: Sequence[str],
    items: Sequence[Any],
    directory: Snapshot | None,
) -> None:
    """Write the results of the good items, as JSON text: what a beacon is told is made once."""
    known = directory.beacons if directory else {}
    beacons: dict[str, str] = {}
    for index, detection, status in zip(found.indexes, found.detections, statuses, strict=True):
        item = items[index]
        if status == "rejected":
            results[index] = rejected(index, REFUSED)
            continue
        mac = detection.mac
        beacon = beacons.get(mac)
        if beacon is None:
            fields = {"mac": mac, "level": detection.level, "location": detection.location}
            beacon = json.dumps(fields | {"known": mac in known})[1:-1]
            beacons[mac] = beacon
        skew: object = "null"
        if item.get("timestamp") not in (None, ""):
            skew = int(detection.received_at) - detection.timestamp
        ignored = "" if item.keys() <= _FIELDS else f'"ignored":{_ignored(item)},'
        results[index] = (
            f'{{"index":{index},"status":"{status}",{beacon},"skew_seconds":{skew},'
            f'{ignored}"errors":[]}}'
        )


def _ignored(item: Mapping[str, Any]) -> str:
    return json.dumps(sorted(name[:64] for name in item.keys() - _FIELDS)[:10])


def rejected(index: int, errors: Sequence[ParameterError]) -> str:
    """Write the result of a bad item."""
    named = [{"field": error.parameter, "reason": error.reason} for error in errors]
    return json.dumps({"index": index, "status": "rejected", "errors": named})
