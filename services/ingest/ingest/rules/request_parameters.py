"""From untrusted text to typed values; pure functions that raise ParameterError."""

import datetime
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from common import beacon as beacon_rules
from common import beacon_id, names
from common.csv_file import MAX_RAW, MISSING, TOO_LONG
from ingest.errors import ParameterError

StaffId = int | str
Parameters = Mapping[str, Any]

RSSI_DBM = (-127, 20)  # of BLE controllers (Bluetooth Core 5.4, vol 4 part E, 7.7.65.2)
# How phones write a strength that they do not know: iOS 0, controllers 127, others no number.
UNKNOWN_RSSI = frozenset({0, 127})
_NO_NUMBER = frozenset({"", "null", "nan"})
EARLIEST = 1_577_836_800  # 2020-01-01: what is older is from a device that lost its clock
# A clock this far ahead is wrong; a detection from it would stay "the latest" for a day or more.
MAX_FUTURE_SECONDS = 86_400
# A clock that is wrong by no more is right enough: a request may take as long to come.
RIGHT_SECONDS = 60
MAX_UNIX_SECONDS = 253_402_300_799  # 9999-12-31T23:59:59Z: later is milliseconds or nonsense
# 1973 in milliseconds and 5138 in seconds: whatever is larger is milliseconds.
FIRST_MILLISECONDS = 100_000_000_000
# What is larger than the last millisecond is microseconds, of 1978 or later, and so on.
_UNITS = {
    "nanoseconds": (MAX_UNIX_SECONDS + 1) * 1_000_000,
    "microseconds": (MAX_UNIX_SECONDS + 1) * 1000,
    "milliseconds": FIRST_MILLISECONDS,
}
MAX_EXACT = 2**53 - 1  # up to here a double, and so JavaScript, holds each whole number

# Not . and .., which lead elsewhere in an address.
STAFF_TEXT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
_CANONICAL_DECIMAL = re.compile(r"0|[1-9][0-9]{0,15}")
# As any language prints a number: 7, 7.0, 1.79E9.
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([Ee][+-]?[0-9]{1,2})?")
# As languages print a whole number that they hold as a double; 1E7 and 007.0 may be names.
_DOUBLE = re.compile(r"-?(0|[1-9][0-9]{0,29})\.[0-9]{1,30}([Ee]\+?[0-9]{1,2})?")
EVENT_ID = re.compile(r"[!-~]{1,128}")
# What the document says of texts; what stands below decides, and takes a little more.
SECONDS_TEXT = r"[0-9]{1,12}(\.[0-9]{1,30})?"
RSSI_TEXT = r"(-?[0-9]|-?1[0-9]|20|-([2-9][0-9]|1[01][0-9]|12[0-7]))(\.[0-4][0-9]{0,9})?|127"
ZONE_TEXT = "[A-Za-z0-9_+/:-]{1,64}"
TIME_TEXT = (
    r"[0-9]{1,14}(\.[0-9]{1,30})?|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt ]"
    r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
)
_ISO_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)", re.ASCII
)
_FLAGS = {"1": True, "true": True, "0": False, "false": False}
# How many texts have their value cached: the same people, beacons and strengths come all the time.
CACHED = 1024
NOT_WHOLE = "must be a whole number"
NOT_EXACT = f"must be text: a double does not hold whole numbers above {MAX_EXACT} exactly"


class Sighting(NamedTuple):
    """What a phone reported: one beacon heard by one staff member."""

    staff_id: StaffId
    mac: str
    rssi: int | None  # dBm, None where it is not known
    timestamp: int | None
    event_id: str | None


class TimeRange(NamedTuple):
    """Whose history, and its bounds in unix seconds, both inclusive."""

    staff_id: StaffId
    start: int
    end: int


def sighting(parameters: Parameters, now: float) -> Sighting:
    """Parse `/newbeacondetect`; `now` is unix seconds and bounds the device's clock."""
    timestamp = None
    if _has_value(parameters, "timestamp"):
        timestamp = seconds(parameters, "timestamp", EARLIEST, int(now) + MAX_FUTURE_SECONDS)
    return Sighting(
        staff_id=staff_id(parameters, "user_address"),
        mac=beacon(parameters, "beacon_address"),
        rssi=strength(parameters, "rssi"),
        timestamp=timestamp,
        event_id=event_id(parameters),
    )


def time_range(parameters: Parameters) -> TimeRange:
    """Parse `/extractbeacon`."""
    parsed = TimeRange(
        staff_id=staff_id(parameters, "staff_id"),
        start=seconds(parameters, "start_time", 0, MAX_UNIX_SECONDS),
        end=seconds(parameters, "end_time", 0, MAX_UNIX_SECONDS),
    )
    if parsed.start > parsed.end:
        raise ParameterError("start_time", "must not be after end_time")
    return parsed


def between(parameters: Parameters) -> TimeRange:
    """Parse the range of `/api/v1`: `from` and `to` in any form of time, both optional."""
    bounds = {"from": 0, "to": MAX_UNIX_SECONDS}
    for name in bounds:
        if _has_value(parameters, name):
            bounds[name] = moment(parameters, name, 0, MAX_UNIX_SECONDS)
    if bounds["from"] > bounds["to"]:
        raise ParameterError("from", "must not be after to")
    return TimeRange(staff_id(parameters, "staff_id"), bounds["from"], bounds["to"])


def zone(parameters: Parameters, name: str) -> str:
    """Return the name of a time zone, "" where none is given; whether it exists is not known."""
    if not _has_value(parameters, name):
        return ""
    text = _text(parameters, name)
    if not re.fullmatch(ZONE_TEXT, text):
        raise ParameterError(name, "must be a time zone such as Asia/Singapore")
    return text


def staff_id(parameters: Parameters, name: str) -> StaffId:
    """Return a canonical decimal as int, any other id as str: 7 and "7" hash to other shards."""
    value = parameters.get(name)
    if isinstance(value, float):
        if not value.is_integer():  # 7.5, or 1e400
            raise ParameterError(name, "must be text or a whole number")
        if abs(value) > MAX_EXACT:
            raise ParameterError(name, NOT_EXACT)
    text = _text(parameters, name)
    canonical = _staff_id(text)
    if canonical is None:
        if _DOUBLE.fullmatch(text):
            raise ParameterError(name, NOT_EXACT)
        dots = ", not dots alone" * (text in (".", ".."))
        reason = f"must be 1 to 64 letters, digits, dots, hyphens or underscores{dots}"
        raise ParameterError(name, reason)
    return canonical


@lru_cache(CACHED)
def by_staff_id(staff_id: StaffId) -> tuple[bool, StaffId]:
    """Return the sort key of staff ids: numbers first, then texts."""
    return isinstance(staff_id, str), staff_id


@lru_cache(CACHED)
def _staff_id(text: str) -> StaffId | None:
    if _DOUBLE.fullmatch(text) and isinstance(number := _number(text), int):
        if abs(number) > MAX_EXACT:
            return None
        text = str(number)
    if not STAFF_TEXT.fullmatch(text):
        return None
    if _CANONICAL_DECIMAL.fullmatch(text) and int(text) <= MAX_EXACT:
        return int(text)
    return text


def any_beacon(parameters: Parameters, name: str) -> str:
    """Return the id of a beacon as it is stored, from a text or the fields of an object."""
    value = parameters.get(name)
    if isinstance(value, dict):
        try:
            return beacon_id.of_fields(value)
        except beacon_id.NotABeaconId as error:
            raise ParameterError(name, str(error)) from None
    identified, reason = _beacon_id(_text(parameters, name))
    if reason:
        raise ParameterError(name, reason)
    return identified


def beacon(parameters: Parameters, name: str) -> str:
    """Return the id of a beacon that is heard or registered, and so has an address."""
    identified = any_beacon(parameters, name)
    if identified in beacon_id.NO_MACS:
        raise ParameterError(name, beacon_id.fault(identified))
    return identified


def aliases(parameters: Parameters, name: str) -> tuple[str, ...]:
    """Return the ids of a list, or of a text with blanks between them."""
    values = parameters.get(name)
    if values is None:
        return ()
    if isinstance(values, str):
        values = values.split()
    if not isinstance(values, list):
        raise ParameterError(name, "must be a list of ids")
    if len(values) > beacon_rules.MAX_ALIASES:
        raise ParameterError(name, beacon_rules.TOO_MANY_ALIASES)
    ids = []
    for number, value in enumerate(values, 1):
        try:
            ids.append(beacon({name: value}, name))
        except ParameterError as error:
            raise ParameterError(name, f"id {number} {error.reason}") from None
    return tuple(ids)


_beacon_id = lru_cache(CACHED)(beacon_id.read)


def strength(parameters: Parameters, name: str) -> int | None:
    """Return dBm, rounded, and None where the sender says that it is not known."""
    if name in parameters and not _has_value(parameters, name):
        return None
    return _strength(_text(parameters, name), name)


@lru_cache(CACHED)
def _strength(text: str, name: str) -> int | None:
    number = _number(text)
    if number is None:
        if text.lower() in _NO_NUMBER:
            return None
        raise ParameterError(name, "must be a number of dBm")
    dbm, (low, high) = round(number), RSSI_DBM
    if dbm in UNKNOWN_RSSI:
        return None
    if not low <= dbm <= high:
        raise ParameterError(name, f"must be from {low} to {high}")
    return dbm


def integer(parameters: Parameters, name: str, low: int, high: int) -> int:
    """Return a whole number in low..high, given as a number or as text, in any form."""
    number = _number(_text(parameters, name))
    if not isinstance(number, int):
        raise ParameterError(name, NOT_WHOLE)
    if not low <= number <= high:
        raise ParameterError(name, f"must be from {low} to {high}")
    return number


def seconds(parameters: Parameters, name: str, low: int, high: int) -> int:
    """Return unix seconds in low..high; fractions of one are cut off."""
    text = _text(parameters, name)
    number = _number(text)
    if number is None:
        raise ParameterError(name, NOT_WHOLE)
    whole = math.floor(number)
    if not low <= whole <= high:
        unit = _unit(whole)
        hint = f", not {text}; send seconds, not {unit}" if unit else ""
        raise ParameterError(name, f"must be from {low} to {high}{hint}")
    return whole


@lru_cache(CACHED)
def _number(text: str) -> int | Decimal | None:
    """Return a number as any language prints it; a whole one as int."""
    if not _NUMBER.fullmatch(text):
        return None
    if text.isdigit():  # as nearly all
        return int(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number


def _unit(number: int) -> str:
    """Return in which unit a time is that is too large for seconds, "" for seconds."""
    return next((unit for unit, first in _UNITS.items() if abs(number) >= first), "")


def moment(parameters: Parameters, name: str, low: int, high: int) -> int:
    """Return unix seconds in low..high from seconds, milliseconds or ISO 8601 with its zone."""
    text = _text(parameters, name)
    hint = ""
    if _ISO_TIME.fullmatch(text):
        try:
            whole = math.floor(datetime.datetime.fromisoformat(text.upper()).timestamp())
        except (ValueError, OverflowError):
            raise ParameterError(name, "is not a time of the calendar") from None
    elif (number := _number(text)) is not None:
        whole = math.floor(number)
        unit = _unit(whole)
        if unit == "milliseconds":
            whole //= 1000
        elif unit:
            hint = f"; send seconds or milliseconds, not {unit}"
    else:
        reason = "must be unix seconds, unix milliseconds or ISO 8601 with a time zone"
        if _ISO_TIME.fullmatch("+".join(text.rsplit(" ", 1))):  # what a form makes of it
            reason += "; in an address, + is written %2B"
        raise ParameterError(name, reason)
    if not low <= whole <= high:
        reason = f"must be from {low} to {high} (unix seconds), not {text}{hint}"
        raise ParameterError(name, reason)
    return whole


def flag(parameters: Parameters, name: str) -> bool:
    """Return a yes or no, no when it is not given."""
    if not _has_value(parameters, name):
        return False
    try:
        return _FLAGS[_text(parameters, name).lower()]
    except KeyError:
        raise ParameterError(name, "must be 1 or 0") from None


def printable(parameters: Parameters, name: str) -> str:
    """Return a name for people: quotes and backslashes are characters, control codes are not."""
    return _printable(_text(parameters, name), name)


def text_or_empty(parameters: Parameters, name: str, most: int) -> str:
    """Return a text for people as it is stored, "" where none is given."""
    if not _has_value(parameters, name):
        return ""
    text = names.folded(_text(parameters, name))
    if text and (reason := names.fault(text, most)):
        raise ParameterError(name, reason)
    return text


def place_name(parameters: Parameters, name: str) -> str:
    """Return a name for people as it is stored: one spelling of what looks the same."""
    return _printable(names.folded(_text(parameters, name)), name)


def _printable(text: str, name: str) -> str:
    if reason := names.fault(text):
        raise ParameterError(name, reason)
    return text


def metres(parameters: Parameters, name: str) -> float | None:
    """Return a coordinate on the plan, None when it is not given."""
    if not _has_value(parameters, name):
        return None
    number = beacon_rules.metres(_text(parameters, name))
    if number is None:
        raise ParameterError(name, beacon_rules.NOT_METRES)
    return number


def event_id(parameters: Parameters) -> str | None:
    """Return the client's idempotency key, None when it sends none."""
    if not _has_value(parameters, "event_id"):
        return None
    text = _text(parameters, "event_id")
    if not EVENT_ID.fullmatch(text):
        raise ParameterError("event_id", "must be 1 to 128 printable ASCII characters, no spaces")
    return text


def _has_value(parameters: Parameters, name: str) -> bool:
    return parameters.get(name) not in (None, "")


def _text(parameters: Parameters, name: str) -> str:
    """Return a scalar as text: objects, lists and booleans are never data here."""
    value = parameters.get(name)
    if isinstance(value, str) and 0 < len(value) <= MAX_RAW:  # as nearly all
        return value.strip()
    if not _has_value(parameters, name):
        raise ParameterError(name, MISSING)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ParameterError(name, "must be text or a number")
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):  # spaces, that is: nothing else is so long
        raise ParameterError(name, TOO_LONG)
    return str(value)
