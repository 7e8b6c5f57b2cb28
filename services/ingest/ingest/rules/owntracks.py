"""What OwnTracks sends by HTTP, and what of it is a detection: a beacon that an iPhone ranged."""

import base64
import enum
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from common import beacon_id
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.rules.request_parameters import EARLIEST, MAX_FUTURE_SECONDS, StaffId
from ingest.rules.strict_json import strict_json

BEACON = "beacon"
_ID_FIELDS = ("uuid", "major", "minor")
_TOPIC = re.compile(r"owntracks/([^/]+)(?:/([^/]+))?")


class Ignored(enum.StrEnum):
    """Why a message is no detection: its kind, or what is wrong with it."""

    # Kinds of messages.
    CARD = "card"
    CONFIGURATION = "configuration"
    DUMP = "dump"
    ENCRYPTED = "encrypted"
    LOCATION = "location"
    LWT = "lwt"
    STATUS = "status"
    STEPS = "steps"
    TRANSITION = "transition"
    WAYPOINT = "waypoint"
    WAYPOINTS = "waypoints"
    OTHER = "other kind"
    # No single message.
    EMPTY = "empty"
    BROKEN = "not JSON"
    NO_OBJECT = "not an object"
    TOO_LARGE = "too large"  # the gateway says it in the place of such a body
    # A beacon that cannot be stored.
    NO_PERSON = "no staff id"
    NO_BEACON = "no beacon id"
    NO_TIME = "no time"
    REFUSED = "refused"  # by MongoDB


class Sender(NamedTuple):
    """Who sends, as told beside the body: each in the order in which they count, "" for nobody."""

    users: Sequence[str]
    devices: Sequence[str]


class RangedBeacon(NamedTuple):
    """A beacon as a phone ranged it."""

    staff_id: StaffId
    mac: str
    rssi: int | None  # dBm, None where it is not known
    timestamp: int
    device: str  # of the person: its name, or ""


def read(body: bytes, sender: Sender, now: float) -> RangedBeacon | Ignored:
    """Return the detection that a message is, or why it is none; `now` is unix seconds."""
    if not body.strip():
        return Ignored.EMPTY
    try:
        message = strict_json(body)
    except ParameterError:
        return Ignored.BROKEN
    if not isinstance(message, dict):
        return Ignored.NO_OBJECT
    if message.get("_type") != BEACON:
        return _kind(message.get("_type"))
    return _ranged(message, sender, now)


def _kind(kind: Any) -> Ignored:
    try:
        return Ignored(kind)
    except ValueError:
        return Ignored.OTHER


def _ranged(message: Mapping[str, Any], sender: Sender, now: float) -> RangedBeacon | Ignored:
    topic = _TOPIC.match(_text(message.get("topic")))
    user, device = topic.groups(default="") if topic else ("", "")
    name = next(filter(None, [user, *sender.users, _text(message.get("tid"))]), "")
    try:
        staff_id = request_parameters.staff_id({"user": name.lower()}, "user")
    except ParameterError:
        return Ignored.NO_PERSON
    try:
        mac = beacon_id.of_fields({field: message.get(field) for field in _ID_FIELDS})
    except beacon_id.NotABeaconId:
        return Ignored.NO_BEACON
    try:
        latest = int(now) + MAX_FUTURE_SECONDS
        timestamp = request_parameters.seconds(message, "tst", EARLIEST, latest)
    except ParameterError:
        return Ignored.NO_TIME
    device = next(filter(None, [device, *sender.devices]), "").lower()
    return RangedBeacon(staff_id, mac, _strength(message), timestamp, device)


def _strength(message: Mapping[str, Any]) -> int | None:
    """Return dBm, None where they are not known: that the beacon was heard is true all the same."""
    try:
        return request_parameters.strength(message, "rssi")
    except ParameterError:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class LogIn(NamedTuple):
    """What a header `Authorization: Basic ...` holds, as UTF-8; both "" for any other header."""

    user: str
    password: str


def log_in(authorization: str) -> LogIn:
    """Return user and password of a header."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return LogIn("", "")
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except ValueError:  # no base64, or no UTF-8
        return LogIn("", "")
    user, _, password = text.partition(":")
    return LogIn(user, password)
