"""What a beacon sent, byte for byte: its id, its power at one metre, and what else it tells.

Formats: iBeacon, AltBeacon, Eddystone (UID, URL, TLM, EID), Ruuvi 5, 6 and E1, BTHome 2, Minew.
Nothing is a reading that the frame's type does not carry, and what stands for "none" is none.
"""

from collections.abc import Iterator
from typing import NamedTuple

from common.beacon_id import (
    ALTBEACON,
    EDDYSTONE_EID,
    EDDYSTONE_UID,
    EDDYSTONE_URL,
    IBEACON,
    NO_MACS,
    read,
)

MAX_BYTES = 255  # of an advertisement of Bluetooth 5 without a chain; one of Bluetooth 4 has 31
AT_ONE_METRE = -41  # dB: how much weaker a signal is there than at the antenna (Eddystone's figure)

_EMITTED = 0x0A
_SERVICE = 0x16
_MAKER = 0xFF
_EDDYSTONE, _BTHOME, _MINEW = 0xFEAA, 0xFCD2, 0xFFE1
_APPLE, _NORDIC, _RUUVI = 0x004C, 0x0059, 0x0499

Reading = int | float


class Advertisement(NamedTuple):
    """What one advertisement told; the id is empty where only the sender's address names it."""

    beacon: str = ""
    telemetry: dict[str, Reading] = {}  # noqa: RUF012  # never changed


class Malformed(ValueError):
    """Says why bytes are no advertisement."""


def decode(text: str) -> Advertisement:
    """Return what the hexadecimal text of an advertisement tells. Raises Malformed."""
    try:
        packet = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise Malformed("must be hexadecimal digits, two for each byte") from None
    if not 0 < len(packet) <= MAX_BYTES:
        raise Malformed(f"must be 1 to {MAX_BYTES} bytes")
    beacon = ""
    telemetry: dict[str, Reading] = {}
    for kind, data in _structures(packet):
        if kind == _EMITTED and len(data) == 1:
            telemetry.setdefault("emitted_dbm", _signed(data))
        elif kind in (_SERVICE, _MAKER) and len(data) > 2:
            number, rest = int.from_bytes(data[:2], "little"), data[2:]
            frame = _of_service(number, rest) if kind == _SERVICE else _of_maker(number, rest)
            beacon = beacon or frame.beacon
            telemetry = frame.telemetry | telemetry  # the first counts
    return Advertisement(beacon, telemetry)


def _structures(packet: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the data of each structure. Raises Malformed."""
    at = 0
    while at < len(packet) and packet[at]:  # zeros fill the rest
        end = at + 1 + packet[at]
        if end > len(packet):
            raise Malformed(f"must be whole: byte {at} announces {packet[at]} more")
        yield packet[at + 1], packet[at + 2 : end]
        at = end


def _of_maker(company: int, data: bytes) -> Advertisement:
    # Development kits send an iBeacon's layout under their own maker's number.
    if company in (_APPLE, _NORDIC) and data[:2] == b"\x02\x15" and len(data) >= 23:
        return _numbered(IBEACON, data)
    if data[:2] == b"\xbe\xac" and len(data) >= 24:  # any company
        return _numbered(ALTBEACON, data)
    if company == _RUUVI:
        return _ruuvi(data)
    return Advertisement()


def _of_service(service: int, data: bytes) -> Advertisement:
    if service == _EDDYSTONE:
        return _eddystone(data)
    if service == _BTHOME:
        return Advertisement(telemetry=_bthome(data))
    if service == _MINEW:
        return _minew(data)
    return Advertisement()


def _numbered(kind: str, data: bytes) -> Advertisement:
    major, minor = _unsigned(data[18:20]), _unsigned(data[20:22])
    beacon, _ = read(f"{kind}:{data[2:18].hex()}:{major}:{minor}")
    return Advertisement(beacon, {"power_dbm": _signed(data[22:23])})


def _eddystone(data: bytes) -> Advertisement:
    frame = data[0]
    if frame == 0x20:
        return Advertisement(telemetry=_tlm(data) if data[1:2] == b"\0" else {})  # else encrypted
    # What is too short, or no web address, spells no id.
    text = {
        0x00: f"{EDDYSTONE_UID}:{data[2:12].hex()}:{data[12:18].hex()}",
        0x10: f"{EDDYSTONE_URL}:{data[2:].hex()}",
        0x30: f"{EDDYSTONE_EID}:{data[2:10].hex()}",
    }.get(frame, "")
    beacon, _ = read(text)
    power = _signed(data[1:2]) + AT_ONE_METRE
    return Advertisement(beacon, {"power_dbm": power} if beacon else {})


def _tlm(data: bytes) -> dict[str, Reading]:
    if len(data) < 14:
        return {}
    readings: dict[str, Reading | None] = {
        "battery_mv": _unsigned(data[2:4]) or None,  # 0: fed by the mains
        "temperature_c": None if data[4:6] == b"\x80\0" else _signed(data[4:6]) / 256,
        "sequence": _unsigned(data[6:10]),
        "uptime_s": _unsigned(data[10:14]) / 10,
    }
    return _known(readings)


def _ruuvi(data: bytes) -> Advertisement:
    if data[0] == 0x05 and len(data) >= 24:
        power = _unsigned(data[13:15])
        readings = {
            "temperature_c": _scaled(data[1:3], 0.005, signed=True),
            "humidity_percent": _scaled(data[3:5], 0.0025),
            "pressure_pa": _scaled(data[5:7], 1, 50_000),
            "battery_mv": None if power >> 5 == 0x7FF else 1600 + (power >> 5),
            "emitted_dbm": None if power & 0x1F == 0x1F else 2 * (power & 0x1F) - 40,
            "sequence": _scaled(data[16:18], 1),
        }
        return Advertisement(_mac(data[18:24]), telemetry=_known(readings))
    if (data[0], len(data)) in ((0x06, 20), (0xE1, 40)):
        readings = {
            "temperature_c": _scaled(data[1:3], 0.005, signed=True),
            "humidity_percent": _scaled(data[3:5], 0.0025),
            "pressure_pa": _scaled(data[5:7], 1, 50_000),
            "sequence": data[15] if data[0] == 0x06 else _scaled(data[25:28], 1),
        }
        # Of format 6 the payload has only half of the address: the sender's counts.
        beacon = _mac(data[34:40]) if data[0] == 0xE1 else ""
        return Advertisement(beacon, telemetry=_known(readings))
    return Advertisement()


def _minew(data: bytes) -> Advertisement:
    if data[0] != 0xA1 or len(data) < 3:
        return Advertisement()
    readings: dict[str, Reading | None] = {"battery_percent": data[2]}
    ends = {0x08: 9, 0x01: 13, 0x03: 15}  # where the address ends, by the frame
    if data[1] not in ends or len(data) < ends[data[1]]:
        return Advertisement()
    if data[1] == 0x01:
        readings["temperature_c"] = round(_signed(data[3:5]) / 256, 2)
        readings["humidity_percent"] = round(_unsigned(data[5:7]) / 256, 2)
    end = ends[data[1]]
    return Advertisement(_mac(data[end - 6 : end][::-1]), telemetry=_known(readings))


# Of each object of BTHome: how many bytes, its name here, what one of it is, and whether signed.
_OBJECTS: dict[int, tuple[int, str, float, bool]] = {
    0x00: (1, "sequence", 1, False),
    0x01: (1, "battery_percent", 1, False),
    0x02: (2, "temperature_c", 0.01, True),
    0x03: (2, "humidity_percent", 0.01, False),
    0x0C: (2, "battery_mv", 1, False),
    0x2E: (1, "humidity_percent", 1, False),
    0x45: (2, "temperature_c", 0.1, True),
}


def _bthome(data: bytes) -> dict[str, Reading]:
    """Return what is told before the first object that is not known, whose size nobody knows."""
    readings: dict[str, Reading | None] = {}
    if data[0] & 0x01 or data[0] >> 5 != 2:  # encrypted, or another version
        return {}
    at = 1
    while at < len(data) and data[at] in _OBJECTS:
        size, name, unit, signed = _OBJECTS[data[at]]
        value = data[at + 1 : at + 1 + size]
        if len(value) < size:
            break
        number = int.from_bytes(value, "little", signed=signed)
        readings[name] = number if unit == 1 else round(number * unit, 2)
        at += 1 + size
    return _known(readings)


def _known(readings: dict[str, Reading | None]) -> dict[str, Reading]:
    """Return what is told, without percentages that cannot be."""
    return {
        name: value
        for name, value in readings.items()
        if value is not None and not (name.endswith("_percent") and value > 100)
    }


def _mac(address: bytes) -> str:
    digits = address.hex().upper()
    return "" if digits in NO_MACS else digits


def _scaled(data: bytes, unit: float, offset: int = 0, *, signed: bool = False) -> Reading | None:
    """Return a reading of Ruuvi's: the lowest signed and the highest unsigned number are none."""
    number = int.from_bytes(data, "big", signed=signed)
    if number == (-0x8000 if signed else (1 << 8 * len(data)) - 1):
        return None
    return offset + number if unit == 1 else round(number * unit, 4)


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _unsigned(data: bytes) -> int:
    return int.from_bytes(data, "big")
