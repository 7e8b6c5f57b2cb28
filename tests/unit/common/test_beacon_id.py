"""Each spelling of a beacon's id that a phone, a gateway or a library writes, and what it means."""

import re
from typing import Any

import pytest

from common import beacon_id

UUID = "e2c56db5-dffb-48d2-b060-d0f5a71096e0"
BARE = UUID.replace("-", "")
MAC = "C2A628384B08"
IBEACON = f"ibeacon:{UUID}:1:4660"
UID = "eddystone-uid:00112233445566778899:aabbccddeeff"
URL = "eddystone-url:036578616d706c6507"
EID = "eddystone-eid:0102030405060708"

SPELLINGS = [
    (MAC, MAC),
    ("c2a628384b08", MAC),
    ("C2:A6:28:38:4B:08", MAC),
    ("c2-a6-28-38-4b-08", MAC),
    ("c2a6.2838.4b08", MAC),
    *((f"c2a628384b08/{kind}", MAC) for kind in (0, 2, 3)),
    ("known:c2a628384b08", MAC),
    (IBEACON, IBEACON),
    (f"iBeacon:{UUID}-1-4660", IBEACON),
    (f"{BARE}-1-4660", IBEACON),
    (f"{UUID}_1_4660", IBEACON),
    (f"{BARE}_1_4660", IBEACON),
    (f"{UUID}_1_4660_C2:A6:28:38:4B:08", IBEACON),
    (f"{BARE}/0001/1234", IBEACON),
    (f"IBEACON:{UUID.upper()}:1:4660", IBEACON),
    (f"ibeacon:{UUID}:0:0", f"ibeacon:{UUID}:0:0"),
    (f"ibeacon:{UUID}:65535:32768", f"ibeacon:{UUID}:65535:32768"),
    (f"altbeacon:{BARE}:1:4660", f"altbeacon:{UUID}:1:4660"),
    (UID, UID),
    ("00112233445566778899/aabbccddeeff", UID),
    ("0x00112233445566778899, 0xaabbccddeeff", UID),
    ("id1: 0x00112233445566778899 id2: 0xaabbccddeeff", UID),
    ("eddy:0011223344445566778899-aabbccddeeff", UID),
    ("eddy:00112233445566778899-aabbccddeeff", UID),
    (EID, EID),
    (URL, URL),
    ("0x036578616d706c6507", URL),
    ("https://example.com", URL),
    ("HTTPS://example.com", URL),
    ("https://example.com/", "eddystone-url:036578616d706c6500"),
    ("https://www.example.com/a", "eddystone-url:016578616d706c650061"),
    ("https://acme-it.com/badge1234", "eddystone-url:0361636d652d697400626164676531323334"),
]
FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"uuid": UUID.upper(), "major": 1, "minor": 4660}, IBEACON),
    ({"kind": "iBeacon", "uuid": BARE, "major": "1", "minor": "4660"}, IBEACON),
    ({"kind": "altbeacon", "uuid": UUID, "major": 1, "minor": 4660}, f"altbeacon:{UUID}:1:4660"),
    ({"kind": "altbeacon", "id": f"id1: {UUID} id2: 1 id3: 2"}, f"altbeacon:{UUID}:1:2"),
    ({"namespace": "00112233445566778899", "instance": "AABBCCDDEEFF"}, UID),
    ({"namespace": "0x00112233445566778899", "instance": "0xaabbccddeeff"}, UID),
    ({"kind": "eddystone-eid", "eid": "0x0102030405060708"}, EID),
    ({"url": "https://example.com"}, URL),
    ({"mac": "c2:a6:28:38:4b:08", "uuid": None, "url": "", "kind": None}, MAC),
    ({"mac": 102030405060.0}, "102030405060"),
    ({"kind": "mac", "id": "0xc2a628384b08"}, MAC),
    ({"kind": "eddystone-eid", "id": "0x0102030405060708"}, EID),
    ({"kind": "eddystone-url", "id": "0x036162636407"}, "eddystone-url:036162636407"),
    ({"id": BARE, "major": 1.0, "minor": 4660}, IBEACON),
    ({"id": "C2A628384B08", "uuid": UUID, "major": 1, "minor": 4660}, IBEACON),
]
REFUSED = [
    ("", beacon_id.NOT_AN_ID),
    ("C2A628384B0", beacon_id.NOT_AN_ID),
    ("0102030405060708", beacon_id.NOT_AN_ID),
    (UUID, beacon_id.WHOLE_FLEET),
    (BARE, beacon_id.WHOLE_FLEET),
    (f"ibeacon:{UUID}", beacon_id.WHOLE_FLEET),
    (f"irk:{BARE}", beacon_id.KEY),
    (f"id1: {UUID} id2: 1 id3: 4660", beacon_id.ANY_KIND),
    ("0xaabbccddeeff", beacon_id.NEEDS_KIND),
    ("0x0102030405060708", beacon_id.NEEDS_KIND),
    (f"known:irk:{BARE}", beacon_id.KEY),
    ("aabbccddee\ufb00", beacon_id.NOT_AN_ID),
    ("0x00112233445566778899", beacon_id.NOT_AN_ID),
    (f"ibeacon:{UUID}:65536:1", beacon_id.NOT_16_BITS),
    (f"ibeacon:{UUID}:01:1", beacon_id.NOT_16_BITS),
    (f"ibeacon:{UUID}:-1:1", beacon_id.NOT_AN_ID),
    (f"{UUID}-1-{'9' * 5000}", beacon_id.NOT_16_BITS),
    ("eddy:0011223344556677889900-aabbccddeeff", beacon_id.NOT_A_NAMESPACE),
    ("https://", beacon_id.NOT_EDDYSTONE_URL),
    ("https://a-name-that-is-too-long.example", beacon_id.NOT_EDDYSTONE_URL),
    ("https://exämple.com", beacon_id.NOT_EDDYSTONE_URL),
    ("eddystone-url:03", beacon_id.NOT_AN_ID),
]


@pytest.mark.parametrize(("text", "stored"), SPELLINGS, ids=[text for text, _ in SPELLINGS])
def test_a_spelling_is_read_and_what_is_stored_reads_as_itself(text: str, stored: str) -> None:
    assert beacon_id.read(text) == beacon_id.read(f" {text} ") == (stored, "")
    assert beacon_id.read(stored) == (stored, "")
    assert re.fullmatch(beacon_id.STORED, stored)
    assert re.fullmatch(beacon_id.BEACON_TEXT, stored)


@pytest.mark.parametrize(("fields", "stored"), FIELDS, ids=[str(fields) for fields, _ in FIELDS])
def test_the_fields_of_a_decoder_are_read(fields: dict[str, Any], stored: str) -> None:
    assert beacon_id.of_fields(fields) == stored


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_is_refused_says_why_and_not_what_it_was(text: str, reason: str) -> None:
    assert beacon_id.read(text) == ("", reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, beacon_id.NO_FIELDS),
        ({"uuid": UUID}, beacon_id.WHOLE_FLEET),
        ({"uuid": "x", "major": 1, "minor": 2}, "must have a UUID of 32 hexadecimal digits"),
        ({"uuid": UUID, "major": -1, "minor": -32768}, beacon_id.NOT_16_BITS),
        ({"uuid": UUID, "major": 1.5, "minor": True}, beacon_id.NOT_16_BITS),
        ({"uuid": [UUID], "major": {}, "minor": 1}, "must have a UUID of 32 hexadecimal digits"),
        ({"kind": "eddystone-uid", "uuid": UUID, "major": 1, "minor": 2}, beacon_id.NOT_THAT_KIND),
        ({"kind": "ibeacon", "id": MAC}, "kind must be mac: it is an id of that kind"),
        ({"kind": "ibeacon", "mac": MAC}, beacon_id.NO_FIELDS),
        ({"id": f"irk:{BARE}"}, beacon_id.KEY),
        ({"id": BARE}, beacon_id.WHOLE_FLEET),
        ({"url": "aabbccddeeff"}, "kind must be mac: it is an id of that kind"),
        ({"mac": "https://example.com"}, "kind must be eddystone-url: it is an id of that kind"),
    ],
)
def test_fields_that_name_no_beacon_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(beacon_id.NotABeaconId) as refused:
        beacon_id.of_fields(fields)
    assert str(refused.value) == reason


@pytest.mark.parametrize("stored", sorted(beacon_id.NO_MACS))
def test_what_stands_for_none_is_no_beacon(stored: str) -> None:
    assert beacon_id.fault(stored).endswith("stands for none")
    assert not beacon_id.fault(MAC) + beacon_id.fault(IBEACON)
    assert not re.fullmatch(beacon_id.BEACON_TEXT, stored)
