"""Taking detections in: POST /detections, one or up to 1000 of them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from flask import Response, request

from ingest import parsing, receipt
from ingest.api import bodies, openapi
from ingest.api.openapi import Body, declare
from ingest.api.problems import Problem, invalid
from ingest.detections import Detection, IdempotencyKey
from ingest.directory import UNKNOWN, Snapshot
from ingest.errors import ParameterError, StoreUnavailable
from ingest.recorder import Outcome
from ingest.store import Store, get_store

MAX_ITEMS = 1000
# 2020-01-01: what is older comes from a device that lost its clock.
EARLIEST = 1_577_836_800
REFUSED = [ParameterError("item", "MongoDB refuses this detection")]

_FIELDS = frozenset({"staff_id", "mac", "rssi", "timestamp", "event_id"})
_LOUDNESS = range(parsing.RSSI_DBM[0], parsing.RSSI_DBM[1] + 1)
_ITEM = openapi.record(
    {
        "staff_id": openapi.STAFF_ID,
        "mac": openapi.text("MAC of the beacon, any case, with or without `:` or `-`"),
        "rssi": openapi.RSSI,
        "timestamp": {
            "description": "When it was heard, by the device's clock: unix seconds, unix"
            " milliseconds or ISO 8601 with a time zone. From 2020 to 24 h ahead of ours. Without"
            " it, the time at which the request came in.",
            "type": ["number", "string", "null"],
        },
        "event_id": openapi.text(
            "Any text that names this detection, a UUID say; a repeat of the whole item is then"
            " stored once. Without it, a repeat of the request is a detection of its own.",
            pattern="^[!-~]{1,128}$",
        ),
    },
    optional=["timestamp", "event_id"],
) | {"additionalProperties": True}
_EXAMPLE = {"staff_id": 0, "mac": "C2:A6:28:38:4B:08", "rssi": -67, "event_id": "8f14e45f"}
_STATUSES = ["stored", "duplicate", "queued", "rejected"]
_RESULT = openapi.record(
    {
        "index": openapi.whole("Its place in the request"),
        "status": openapi.text(
            "`stored` durably; `duplicate`: it was stored before; `queued`: on this service's disk"
            " until the database is back; `rejected`: `errors` says why, do not repeat it",
            enum=_STATUSES,
        ),
        "mac": openapi.MAC,
        "level": openapi.or_null(openapi.LEVEL),
        "location": openapi.or_null(openapi.LOCATION),
        "known": openapi.yes_no("Whether the beacon is in the directory"),
        "skew_seconds": openapi.or_null(
            openapi.whole("Our clock at the arrival less the device's; null without `timestamp`")
        ),
        "ignored": openapi.several(openapi.text("Name"), "Fields that mean nothing here"),
        "errors": openapi.several(
            openapi.record({"field": openapi.text("Field"), "reason": openapi.text("Why")})
        ),
    },
    optional=["mac", "level", "location", "known", "skew_seconds", "ignored"],
)
_ANSWER = openapi.gives(
    {
        "results": openapi.several(_RESULT, "One for each item, in their order"),
        "counts": openapi.record({status: openapi.whole("How many") for status in _STATUSES}),
        "dry_run": openapi.yes_no("Whether nothing was stored"),
    }
)


class Understood(NamedTuple):
    """The items of a request: the good ones with their index, and what is wrong with the others."""

    detections: list[Detection]
    indexes: list[int]
    wrong: dict[int, list[ParameterError]]


@declare(
    "POST",
    "/detections",
    summary="Store detections",
    description=f'One object, or `{{"detections": [...]}}` with up to {MAX_ITEMS} of them. 200:'
    " each is stored by a majority of the database's servers, in their journals, or its result says"
    " `rejected`. 202: some are queued; nothing more is to be done about them. A single object that"
    " is bad is a 400. On 429 and 503 nothing is promised: send all of it again, with the same"
    " `event_id`s and timestamps. Without `event_id`s, the gateway's own retry is harmless too: it"
    " repeats its request id, which with the item's index then names the detection.",
    parameters=[
        openapi.query(
            "dry_run",
            openapi.text("`1`: store nothing, tell what would happen", enum=["0", "1"]),
        )
    ],
    body=Body(
        "One detection or many.",
        {
            "application/json": {
                "schema": {
                    "anyOf": [
                        _ITEM,
                        {
                            "type": "object",
                            "required": ["detections"],
                            "properties": {
                                "detections": openapi.several(_ITEM) | {"maxItems": MAX_ITEMS}
                            },
                        },
                    ]
                },
                "example": {"detections": [_EXAMPLE]},
            }
        },
    ),
    answers=_ANSWER | {202: _ANSWER[200]._replace(description="Done; some are queued.")},
    errors=["invalid_request", "too_large", "unsupported_media_type", "store_unavailable"],
    curl="curl 'HOST/api/v1/detections' -H 'Content-Type: application/json'"
    f" -d '{json.dumps(_EXAMPLE)}'",
)
def post_detections() -> Response:
    """Store one detection or many, and tell what became of each."""
    dry_run = parsing.flag(request.args, "dry_run")
    items, single = _items(bodies.json_object())
    received_at = receipt.received_at()
    store = get_store()
    directory = _directory(store)
    found = _understand(items, received_at, directory)
    if single and found.wrong:
        raise invalid(found.wrong[0])
    statuses = _outcomes(store, found.detections, dry_run=dry_run)
    results: list[str] = [""] * len(items)
    for index, errors in found.wrong.items():
        results[index] = _rejected(index, errors)
    _tell(results, found, statuses, items, directory)
    counts = dict.fromkeys(_STATUSES, 0) | Counter(statuses)
    counts["rejected"] += len(found.wrong)
    body = f'{{"results":[{",".join(results)}],"counts":{json.dumps(counts)}'
    body += f',"dry_run":{"true" if dry_run else "false"}}}\n'
    return Response(body, 202 if counts["queued"] else 200, mimetype="application/json")


def _items(body: dict[str, Any]) -> tuple[list[Any], bool]:
    if "detections" not in body:
        return [body], True
    items = body["detections"]
    if not isinstance(items, list):
        raise ParameterError("detections", "must be a list")
    if len(items) > MAX_ITEMS:
        raise Problem("too_large", f"{len(items)} detections; at most {MAX_ITEMS} at once")
    return items, False


def _directory(store: Store) -> Snapshot | None:
    """Return the directory, None while it cannot be told."""
    try:
        return store.beacons_known()
    except StoreUnavailable:
        return None


@lru_cache(maxsize=1024, typed=True)
def _staff_id(value: object) -> parsing.StaffId:
    return parsing.staff_id({"staff_id": value}, "staff_id")


@lru_cache(maxsize=1024, typed=True)
def _mac(value: object) -> str:
    return parsing.mac({"mac": value}, "mac")


def _understand(items: Sequence[Any], received_at: float, directory: Snapshot | None) -> Understood:
    """Parse items. A plain loop: at 500 items a request it is most of what a detection costs."""
    found = Understood([], [], {})
    arrival = int(received_at)
    request_id = receipt.request_id()
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
                key = IdempotencyKey(f"request:{request_id}:{index}", arrival)
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


def _outcomes(store: Store, detections: list[Detection], *, dry_run: bool) -> list[str]:
    if not detections:
        return []
    if not dry_run:
        return [_WORDS[outcome] for outcome in store.recorder.record_many(detections)]
    ids = [detection.document_id() for detection in detections]
    try:
        store.recorder.check_reachable()
        there = store.reports.existing(ids)
    except StoreUnavailable:
        return ["queued"] * len(detections)
    statuses = []
    for one in ids:
        statuses.append("duplicate" if one in there else "stored")
        there.add(one)
    return statuses


_WORDS = {outcome: outcome.value for outcome in Outcome}


def _tell(
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
            results[index] = _rejected(index, REFUSED)
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


def _rejected(index: int, errors: Sequence[ParameterError]) -> str:
    named = [{"field": error.parameter, "reason": error.reason} for error in errors]
    return json.dumps({"index": index, "status": "rejected", "errors": named})
