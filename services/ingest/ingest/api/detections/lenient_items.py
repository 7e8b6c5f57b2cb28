"""Items of POST /detections in other types than `DetectionInput` has, or with other fields.

One table of readers both makes the item and says everything that is wrong with it.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from common.advertisement import Malformed, decode
from common.beacon_id import MAC, kind_of
from ingest.api.detections.detection_input import HEARD, DetectionInput, StrictItem
from ingest.api.http.readers import Reader, read_all
from ingest.errors import Fault, ParameterError
from ingest.rules import request_parameters
from ingest.rules.request_parameters import EARLIEST, StaffId

_FIELDS = frozenset((HEARD, *DetectionInput.__struct_fields__))
MAX_IGNORED, MAX_IGNORED_TEXT = 10, 64


class LenientItem(NamedTuple):
    """An item of other types, or with fields of other names, as `request_parameters` reads it."""

    staff_id: StaffId
    mac: str
    rssi: int | None
    timestamp: int | None
    event_id: str | None
    ignored: list[str] | UnsetType
    telemetry: dict[str, float] | UnsetType


def readers(latest: int) -> dict[str, Reader]:
    """Return how each field of an item is read; a time may be `latest` (unix seconds)."""
    return {
        "staff_id": request_parameters.staff_id,
        "mac": request_parameters.beacon,
        "rssi": request_parameters.strength,
        "timestamp": partial(_device_time, latest=latest),
        "event_id": lambda fields, _: request_parameters.event_id(fields),
    }


def _device_time(fields: Mapping[str, Any], name: str, latest: int) -> int | None:
    if fields.get(name) in (None, ""):
        return None
    return request_parameters.moment(fields, name, EARLIEST, latest)


def read(item: Any, by_field: Mapping[str, Reader]) -> LenientItem:
    """Return an item with every value as it is stored. Raises ParameterError."""
    fields, telemetry = identified(item, "mac")
    values = {name: read_field(fields, name) for name, read_field in by_field.items()}
    return LenientItem(**values, ignored=ignored(fields.keys() - _FIELDS), telemetry=telemetry)


def ignored(names: Iterable[str]) -> list[str] | UnsetType:
    """Return what the answer says of fields that mean nothing: some of them, each cut."""
    first = sorted(name[:MAX_IGNORED_TEXT] for name in names)[:MAX_IGNORED]
    # What Python's JSON reads but no UTF-8 can hold is answered as a question mark.
    return [name.encode("utf-8", "replace").decode() for name in first] or UNSET


def _fields(item: Any) -> dict[str, Any]:
    fields = msgspec.to_builtins(item) if isinstance(item, StrictItem) else item
    if not isinstance(fields, dict):
        raise ParameterError("item", "must be a JSON object")
    return fields


def identified(item: Any, name: str) -> tuple[dict[str, Any], dict[str, float] | UnsetType]:
    """Return the fields of an item with the beacon that its advertisement names, and telemetry.

    `name`: of the field that has the beacon's id. Raises ParameterError.
    """
    fields = _fields(item)
    if fields.get("raw") in (None, ""):
        return fields, UNSET
    if not isinstance(fields["raw"], str):
        raise ParameterError("raw", "must be text")
    try:
        beacon, telemetry = decode(fields["raw"])
    except Malformed as error:
        raise ParameterError("raw", str(error)) from None
    sender = request_parameters.beacon(fields, name) if fields.get(name) else ""
    if not beacon or kind_of(beacon) == MAC:  # some repeat their address, which may be another's
        beacon = sender or beacon
    if not beacon:
        raise ParameterError("raw", f"names no beacon: send the sender's address as `{name}`, too")
    return fields | {name: beacon}, telemetry or UNSET


def faults_of(item: Any, by_field: Mapping[str, Reader], fields: Collection[str]) -> list[Fault]:
    """Return everything that is wrong with an item, which may have these fields."""
    try:
        sent = _fields(item)
    except ParameterError as error:
        return [error.fault]
    known = {"detections", HEARD, *fields} - by_field.keys()
    try:
        return read_all(by_field, identified(sent, "mac")[0], known)[1]
    except ParameterError as error:
        others = {name: reader for name, reader in by_field.items() if name != "mac"}
        return [error.fault, *read_all(others, sent, known | {"mac"})[1]]
