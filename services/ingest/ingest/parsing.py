"""From untrusted text to typed values; pure functions that raise ParameterError."""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ingest.errors import ParameterError

StaffId = int | str
Parameters = Mapping[str, Any]

# The range that BLE controllers report (Bluetooth Core 5.4, vol 4 part E, 7.7.65.2).
RSSI_DBM = (-127, 20)
# A clock this far ahead is wrong; a detection from it would stay "the latest" for a day or more.
MAX_FUTURE_SECONDS = 86_400
# 9999-12-31T23:59:59Z: later bounds are milliseconds or nonsense.
MAX_UNIX_SECONDS = 253_402_300_799
MAX_STAFF_NUMBER = 2**63 - 1  # the largest integer BSON can hold

_STAFF_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CANONICAL_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}(\.0+)?")
_EVENT_ID = re.compile(r"[!-~]{1,128}")
_MAC = re.compile(r"[0-9A-F]{12}")


class Sighting(NamedTuple):
    """What a phone reported: one beacon heard by one staff member."""

    staff_id: StaffId
    mac: str
    rssi: int
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
    if _given(parameters, "timestamp"):
        timestamp = integer(parameters, "timestamp", 0, int(now) + MAX_FUTURE_SECONDS)
    return Sighting(
        staff_id=staff_id(parameters, "user_address"),
        mac=mac(parameters, "beacon_address"),
        rssi=integer(parameters, "rssi", *RSSI_DBM),
        timestamp=timestamp,
        event_id=_event_id(parameters),
    )


def time_range(parameters: Parameters) -> TimeRange:
    """Parse `/extractbeacon`."""
    parsed = TimeRange(
        staff_id=staff_id(parameters, "staff_id"),
        start=integer(parameters, "start_time", 0, MAX_UNIX_SECONDS),
        end=integer(parameters, "end_time", 0, MAX_UNIX_SECONDS),
    )
    if parsed.start > parsed.end:
        raise ParameterError("start_time", "must not be after end_time")
    return parsed


def staff_id(parameters: Parameters, name: str) -> StaffId:
    """Return a canonical decimal as int, any other id as str: 7 and "7" hash to other shards."""
    text = _text(parameters, name)
    if not _STAFF_ID.fullmatch(text):
        raise ParameterError(name, "must be 1 to 64 letters, digits, dots, hyphens or underscores")
    if _CANONICAL_DECIMAL.fullmatch(text) and int(text) <= MAX_STAFF_NUMBER:
        return int(text)
    return text


def mac(parameters: Parameters, name: str) -> str:
    """Return the MAC as 12 upper-case hexadecimal digits."""
    digits = _text(parameters, name).replace(":", "").replace("-", "").upper()
    if not _MAC.fullmatch(digits):
        raise ParameterError(name, "must be a MAC address of 12 hexadecimal digits")
    return digits


def integer(parameters: Parameters, name: str, low: int, high: int) -> int:
    """Return a whole number in low..high, given as a number or as decimal text."""
    text = _text(parameters, name)
    if not _INTEGER.fullmatch(text):
        raise ParameterError(name, "must be a whole number")
    number = int(text.partition(".")[0])
    if not low <= number <= high:
        hint = "; send seconds, not milliseconds" if number > MAX_UNIX_SECONDS else ""
        raise ParameterError(name, f"must be from {low} to {high}{hint}")
    return number


def _event_id(parameters: Parameters) -> str | None:
    if not _given(parameters, "event_id"):
        return None
    text = _text(parameters, "event_id")
    if not _EVENT_ID.fullmatch(text):
        raise ParameterError("event_id", "must be 1 to 128 printable ASCII characters, no spaces")
    return text


def _given(parameters: Parameters, name: str) -> bool:
    return parameters.get(name) not in (None, "")


def _text(parameters: Parameters, name: str) -> str:
    """Return a scalar as text: objects, lists and booleans are never data here."""
    value = parameters.get(name)
    if not _given(parameters, name):
        raise ParameterError(name, "is missing")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ParameterError(name, "must be text or a number")
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    return value.strip() if isinstance(value, str) else str(value)
