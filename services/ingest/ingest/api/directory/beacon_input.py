"""Beacons as a client writes them: the lines of a CSV file, and the fields of one."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from common import beacon_file, spreadsheet
from common.beacon import MAX_ALIASES, MAX_METRES, ONE_AXIS, Beacon
from common.beacon_file import COLUMNS, MAX_BEACONS, BeaconFile
from common.csv_file import TooManyRows
from common.directory import IdsRefused
from common.names import MAX_TEXT
from ingest.api.detections.detection_input import BeaconText
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.readers import read_all
from ingest.errors import Fault
from ingest.rules import request_parameters
from ingest.rules.positions import Position, doubts

Name = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


_Coordinate = Annotated[
    Annotated[float, Meta(ge=-MAX_METRES, le=MAX_METRES)]
    | Annotated[str, Meta(extra_json_schema={"pattern": r"^(-?[0-9]{1,6}(\.[0-9]{1,9})?)?$"})],
    Meta(description="Metres on the plan of the level; both or neither"),
]


class PlaceInput(Struct):
    """Where a beacon hangs; fields of other names are ignored."""

    level: Annotated[Name | float, Meta(description="Level")]
    location: Annotated[Name | float, Meta(description="Name of the spot")]
    x: _Coordinate | UnsetType | None = UNSET
    y: _Coordinate | UnsetType | None = UNSET
    aliases: Annotated[
        Annotated[list[BeaconText], Meta(max_length=MAX_ALIASES)] | UnsetType | None,
        Meta(description="Its other ids; without this field they stay, an empty list takes them"),
    ] = UNSET


_READERS = {
    "mac": request_parameters.beacon,
    "level": request_parameters.place_name,
    "location": request_parameters.place_name,
    "x": request_parameters.metres,
    "y": request_parameters.metres,
    "aliases": request_parameters.aliases,
}


def beacon(fields: Mapping[str, Any]) -> tuple[Beacon | None, list[Fault]]:
    """Return a beacon, or everything that is wrong with it."""
    values, faults = read_all(_READERS, fields)
    if not faults and (values["x"] is None) != (values["y"] is None):
        faults.append(Fault("x", ONE_AXIS))
    return (None, faults) if faults else (Beacon(**values), [])


def ids_refused(error: IdsRefused) -> Problem:
    """Return the problem of a beacon that was to have ids of others, or too many."""
    return invalid([Fault(refusal.field, refusal.reason) for refusal in error.refusals])


def parse_file(text: str) -> BeaconFile:
    """Return what a file holds. Raises Problem at the first line beyond the limit."""
    try:
        return beacon_file.read(text)
    except TooManyRows:
        reason = f"more than {MAX_BEACONS} beacons; send them in parts"
        raise Problem("too_large", reason) from None


def doubts_of(beacons: Iterable[Beacon], directory: Iterable[Beacon]) -> dict[str, str]:
    """Return by MAC what looks wrong with the positions of beacons, among the others."""
    every = {beacon.mac: beacon for beacon in (*directory, *beacons)}
    levels: dict[str, dict[str, Position]] = {}
    for beacon in every.values():
        if beacon.x is not None and beacon.y is not None:
            levels.setdefault(beacon.level, {})[beacon.mac] = (beacon.x, beacon.y)
    texts = {}
    for beacon in beacons:
        there = levels.get(beacon.level, {})
        if beacon.mac in there:
            others = [at for mac, at in there.items() if mac != beacon.mac]
            texts[beacon.mac] = doubts(there[beacon.mac], others)
    return {mac: doubt for mac, doubt in texts.items() if doubt}


def write_file(beacons: Iterable[Beacon]) -> str:
    """Return a file that `parse_file` reads, and a spreadsheet shows as it is."""
    out = io.StringIO(newline="")
    rows = ((*beacon[:-1], " ".join(beacon.aliases)) for beacon in beacons)
    csv.writer(out).writerows([COLUMNS, *(map(spreadsheet.cell, row) for row in rows)])
    return spreadsheet.marked(out.getvalue())
