"""What each kind of beacon sends, byte for byte, and what it means."""

from typing import Any

import pytest

from common.advertisement import Advertisement, Malformed, decode

UUID = "e2c56db5-dffb-48d2-b060-d0f5a71096e0"
E = UUID.replace("-", "")
NAMESPACE = "00112233445566778899"
MAC = "C2A628384B08"
TAG = "CBB8334C884F"
FLAGS, EDDYSTONE = "02011a", "0201060303aafe"

# Bytes, id, power at one metre, telemetry.
VECTORS: dict[str, tuple[str, str, int | None, dict[str, Any]]] = {
    "iBeacon": (f"{FLAGS}1aff4c000215{E}00011234c5", f"ibeacon:{UUID}:1:4660", -59, {}),
    "without flags": (f"1aff4c000215{E}00011234c5", f"ibeacon:{UUID}:1:4660", -59, {}),
    "a name first": (
        f"{FLAGS}04096162631aff4c000215{E}00011234c5",
        f"ibeacon:{UUID}:1:4660",
        -59,
        {},
    ),
    "a name behind": (
        f"{FLAGS}1aff4c000215{E}00011234c50409616263",
        f"ibeacon:{UUID}:1:4660",
        -59,
        {},
    ),
    "the highest numbers": (
        f"{FLAGS}1aff4c000215{E}ffff800005",
        f"ibeacon:{UUID}:65535:32768",
        5,
        {},
    ),
    "the lowest numbers": (f"{FLAGS}1aff4c000215{E}0000000000", f"ibeacon:{UUID}:0:0", 0, {}),
    "the weakest": (f"{FLAGS}1aff4c000215{E}0001000280", f"ibeacon:{UUID}:1:2", -128, {}),
    "a maker's byte behind": (
        f"{FLAGS}1bff4c000215{E}00010002c564",
        f"ibeacon:{UUID}:1:2",
        -59,
        {},
    ),
    "what it emits in front": (
        f"020a041aff4c000215{E}00010002c5",
        f"ibeacon:{UUID}:1:2",
        -59,
        {"emitted_dbm": 4},
    ),
    "a development kit": (
        "0201041aff590002150112233445566778899aabbccddeeff0000100c3bb",
        "ibeacon:01122334-4556-6778-899a-abbccddeeff0:1:195",
        -69,
        {},
    ),
    "AltBeacon": (f"0201061bff1801beac{E}00011234c507", f"altbeacon:{UUID}:1:4660", -59, {}),
    "AltBeacon of another company": (
        f"0201061bff2c02beac{E}00011234c507",
        f"altbeacon:{UUID}:1:4660",
        -59,
        {},
    ),
    "Eddystone-UID": (
        f"{EDDYSTONE}1716aafe00ee{NAMESPACE}0000000000010000",
        f"eddystone-uid:{NAMESPACE}:000000000001",
        -59,
        {},
    ),
    "Eddystone-UID without what is reserved": (
        f"{EDDYSTONE}1516aafe00ee{NAMESPACE}000000000001",
        f"eddystone-uid:{NAMESPACE}:000000000001",
        -59,
        {},
    ),
    "an instance like a MAC": (
        f"{EDDYSTONE}1716aafe00ee{NAMESPACE}aabbccddeeff0000",
        f"eddystone-uid:{NAMESPACE}:aabbccddeeff",
        -59,
        {},
    ),
    "Eddystone-TLM": (
        f"{EDDYSTONE}1116aafe20000bb815800000006400000384",
        "",
        None,
        {"battery_mv": 3000, "temperature_c": 21.5, "sequence": 100, "uptime_s": 90.0},
    ),
    "Eddystone-TLM in the cold": (
        f"{EDDYSTONE}1116aafe20000bb8ff800000006400000384",
        "",
        None,
        {"battery_mv": 3000, "temperature_c": -0.5, "sequence": 100, "uptime_s": 90.0},
    ),
    "Eddystone-TLM on the mains, without a thermometer": (
        f"{EDDYSTONE}1116aafe2000000080000000006400000384",
        "",
        None,
        {"sequence": 100, "uptime_s": 90.0},
    ),
    "Eddystone-TLM, encrypted": (
        f"{EDDYSTONE}1516aafe200100112233445566778899aabb1234abcd",
        "",
        None,
        {},
    ),
    "Eddystone-URL": (
        f"{EDDYSTONE}0e16aafe10ee036578616d706c6507",
        "eddystone-url:036578616d706c6507",
        -59,
        {},
    ),
    "Eddystone-URL like a sensor's": (
        f"{EDDYSTONE}1716aafe10ee0361636d652d697400626164676531323334",
        "eddystone-url:0361636d652d697400626164676531323334",
        -59,
        {},
    ),
    "Eddystone-EID": (
        f"{EDDYSTONE}0d16aafe30ee0102030405060708",
        "eddystone-eid:0102030405060708",
        -59,
        {},
    ),
    "Ruuvi 5": (
        "0201061bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f",
        TAG,
        None,
        {
            "temperature_c": 24.3,
            "humidity_percent": 53.49,
            "pressure_pa": 100044,
            "battery_mv": 2977,
            "emitted_dbm": 4,
            "sequence": 205,
        },
    ),
    "Ruuvi 5, the highest": (
        "0201061bff9904057ffffffefffe7fff7fff7fffffdefefffecbb8334c884f",
        TAG,
        None,
        {
            "temperature_c": 163.835,
            "pressure_pa": 115534,
            "battery_mv": 3646,
            "emitted_dbm": 20,
            "sequence": 65534,
        },
    ),
    "Ruuvi 5, the lowest": (
        "0201061bff9904058001000000008001800180010000000000cbb8334c884f",
        TAG,
        None,
        {
            "temperature_c": -163.835,
            "humidity_percent": 0.0,
            "pressure_pa": 50000,
            "battery_mv": 1600,
            "emitted_dbm": -40,
            "sequence": 0,
        },
    ),
    "Ruuvi 5, nothing known": (
        "0201061bff9904058000ffffffff800080008000ffffffffffffffffffffff",
        "",
        None,
        {},
    ),
    "Ruuvi 6": (
        "17ff990406170c5668c79e007000c90501d9ffcd004c884f",
        "",
        None,
        {
            "temperature_c": 29.5,
            "humidity_percent": 55.3,
            "pressure_pa": 101102,
            "sequence": 205,
        },
    ),
    "Ruuvi E1": (
        "2bff9904e1170c5668c79e0065007004bd11ca00c90a0213e0acffffffdecdee10ffffffffffcbb8334c884f",
        TAG,
        None,
        {
            "temperature_c": 29.5,
            "humidity_percent": 55.3,
            "pressure_pa": 101102,
            "sequence": 14601710,
        },
    ),
    "BTHome": (
        "0201060c16d2fc40016102ca0903bf13",
        "",
        None,
        {"battery_percent": 97, "temperature_c": 25.06, "humidity_percent": 50.55},
    ),
    "BTHome with buttons": (
        "0201060c16d2fc44000701613a003a01",
        "",
        None,
        {"sequence": 7, "battery_percent": 97},
    ),
    "BTHome without a battery": ("0201060616d2fc4001ff", "", None, {}),
    "Minew": (
        "0201060303e1ff1016e1ffa10864084b3828a6c2504c5553",
        MAC,
        None,
        {"battery_percent": 100},
    ),
    "Minew's thermometer": (
        "0201060303e1ff1016e1ffa1016418013c19084b3828a6c2",
        MAC,
        None,
        {"battery_percent": 100, "temperature_c": 24.0, "humidity_percent": 60.1},
    ),
    "Minew's thermometer in the cold": (
        "0201060303e1ff1016e1ffa10164ff803c19084b3828a6c2",
        MAC,
        None,
        {"battery_percent": 100, "temperature_c": -0.5, "humidity_percent": 60.1},
    ),
    "Minew, moved": (
        "0201060303e1ff1216e1ffa10364fffe0000ff00084b3828a6c2",
        MAC,
        None,
        {"battery_percent": 100},
    ),
    "nothing of a beacon": (f"{FLAGS}0409616263", "", None, {}),
    "zeros behind": (f"1aff4c000215{E}00011234c50000", f"ibeacon:{UUID}:1:4660", -59, {}),
}


@pytest.mark.parametrize("name", VECTORS)
def test_an_advertisement_tells_what_its_type_carries_and_no_more(name: str) -> None:
    text, beacon, power, telemetry = VECTORS[name]
    if power is not None:
        telemetry = telemetry | {"power_dbm": power}
    assert decode(text) == (beacon, telemetry)
    assert decode(text.upper()) == decode(f"0x{text}") == decode(text)


@pytest.mark.parametrize("text", ["", "x", "020", "0201", "02011a1aff4c00", "00" * 256])
def test_what_is_no_advertisement_says_why(text: str) -> None:
    with pytest.raises(Malformed, match="must be "):
        decode(text)


def test_bytes_of_any_kind_are_decoded_or_refused() -> None:
    whole = [bytes.fromhex(text) for text, *_ in VECTORS.values()]
    for packet in whole:
        for at in range(len(packet)):
            for value in (0x00, 0x7F, 0xFF):
                bent = packet[:at] + bytes([value]) + packet[at + 1 :]
                try:
                    assert isinstance(decode(bent.hex()), Advertisement)
                except Malformed:
                    continue
