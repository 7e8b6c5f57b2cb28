"""A file of beacons in CSV: `/api/v1/beacons/import` and `mongo.directory` read it."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from common import beacon, beacon_id, csv_file, names
from common.beacon import MAX_ALIASES, Beacon
from common.csv_file import MAX_RAW, MISSING, TOO_LONG, BadLine

COLUMNS = list(Beacon._fields)
MAX_BEACONS = 2000
ALIASES = "aliases"
# What is set of these is an alias, too, where all of it is: one column alone may be anything.
_IDS = (("uuid", "major", "minor"), ("namespace", "instance"))
_COLUMNS = csv_file.Columns(
    {
        "mac": ("mac", "mac address", "macaddress", "beacon address", "beacon", "address"),
        "level": ("level", "floor", "floor name", "storey", "etage"),
        "location": ("location", "location name", "room", "place", "name", "alias"),
        "x": ("x",),
        "y": ("y",),
        ALIASES: ("aliases",),
        "uuid": ("proximity uuid", "proximity", "ibeacon uuid", "uuid"),
        "major": ("major",),
        "minor": ("minor",),
        "namespace": ("namespace id", "namespace", "eddystone namespace"),
        "instance": ("instance id", "instanceid", "instance", "eddystone instance"),
    },
    needed=frozenset({"mac", "level", "location"}),
    max_rows=MAX_BEACONS,
    coordinates=("x", "y"),
)
# A spreadsheet in German parts columns with semicolons, and quotes the cell.
_BETWEEN_ALIASES = re.compile(r"[\s;]+")
_LONGEST_ALIASES = MAX_ALIASES * MAX_RAW


class BeaconFile(NamedTuple):
    """The beacons of a file, and what is wrong with its lines."""

    beacons: list[Beacon]
    errors: list[BadLine]  # of the first bad lines
    bad_lines: int
    columns: dict[str, str]  # of the file, by field
    lines: dict[str, int]  # by each id of the beacons

    @property
    def keeps_aliases(self) -> bool:
        """Tell whether beacons keep the aliases that they have, as the file does not tell all."""
        return ALIASES not in self.columns


def read(text: str) -> BeaconFile:
    """Return what a file holds. Raises csv_file.TooManyRows at the first line beyond the limit."""
    beacons: list[Beacon] = []
    lines: dict[str, int] = {}
    of_lines = csv_file.read(
        text, _COLUMNS, lambda fields, number: _add(fields, number, beacons, lines)
    )
    return BeaconFile(beacons, *of_lines, lines)


def _add(
    fields: dict[str, str], number: int, beacons: list[Beacon], lines: dict[str, int]
) -> Iterator[BadLine]:
    """Add the beacon of a row to the others, or yield what is wrong with it."""
    values: dict[str, Any] = {}
    is_bad = False
    for field in COLUMNS:
        text = fields.get(field, "")
        values[field], reason = _value(field, text)
        if reason:
            is_bad = True
            is_told = len(text) <= MAX_RAW and not beacon_id.may_be_key(text)
            yield BadLine(number, field, reason, text if is_told else "")
    for parts in _IDS:
        named = {field: text for field in parts if (text := fields.get(field, "").strip())}
        if len(named) < len(parts):
            continue
        try:
            values[ALIASES] = *values[ALIASES], beacon_id.of_fields(named)
        except beacon_id.NotABeaconId as error:
            is_bad = True
            yield BadLine(number, parts[0], str(error))
    if is_bad:
        return
    if (values["x"] is None) != (values["y"] is None):
        yield BadLine(number, "x", beacon.ONE_AXIS)
        return
    entry = Beacon(**values).with_aliases(values[ALIASES])
    if len(entry.aliases) > MAX_ALIASES:
        yield BadLine(number, ALIASES, beacon.TOO_MANY_ALIASES)
        return
    for field, name in (("mac", entry.mac), *((ALIASES, alias) for alias in entry.aliases)):
        if name in lines:
            yield BadLine(number, field, f"{name} stands in an earlier line too")
            return
    lines |= dict.fromkeys(entry.ids, number)
    beacons.append(entry)


def _value(field: str, text: str) -> tuple[Any, str]:
    """Return the value of a field, and what is wrong with it ("": nothing)."""
    if field == ALIASES:
        return _aliases(text)
    if not text:
        return None, "" if field in "xy" else MISSING
    if len(text) > MAX_RAW:
        return None, TOO_LONG
    if field == "mac":
        return _id(text.strip())
    if field in "xy":
        number = beacon.metres(text.strip())
        return number, beacon.NOT_METRES if number is None else ""
    name = names.folded(text.strip())
    return name, names.fault(name)


def _aliases(text: str) -> tuple[tuple[str, ...], str]:
    """Return the ids of a cell, and what is wrong with the first bad one."""
    if len(text) > _LONGEST_ALIASES:
        return (), beacon.TOO_MANY_ALIASES
    ids = []
    for number, spelling in enumerate(filter(None, _BETWEEN_ALIASES.split(text)), 1):
        name, reason = _id(spelling)
        if reason:
            return (), f"id {number} {reason}"
        ids.append(name)
    return tuple(ids), ""


def _id(text: str) -> tuple[str, str]:
    name, reason = beacon_id.read(text)
    return name, reason or beacon_id.fault(name)
