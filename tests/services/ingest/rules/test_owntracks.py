"""What of OwnTracks' messages is a detection, by the rule alone: the vectors of the whole."""

import json
from collections import Counter
from urllib.parse import parse_qs

import pytest

from ingest.rules.owntracks import Ignored, LogIn, RangedBeacon, Sender, log_in, read
from tests.services.ingest.owntracks_vectors import VECTORS, WHO, T, basic, without

NOBODY = Sender((), ())


def message(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.mark.parametrize("name", VECTORS)
def test_each_message_is_a_detection_or_not_for_a_reason(name: str) -> None:
    case = VECTORS[name]
    outcomes = [read(message(body), Sender(["jane"], ["phone"]), T) for body in case.bodies]
    ignored = Counter(outcome.value for outcome in outcomes if isinstance(outcome, Ignored))
    assert ignored == Counter(case.ignored)
    ranged = {outcome[:4] for outcome in outcomes if isinstance(outcome, RangedBeacon)}
    stored = {row[:4] for row in case.rows}
    assert stored <= ranged
    # A repeat may tell another strength: it is the same detection.
    assert {(*row[:2], row[3]) for row in ranged} == {(*row[:2], row[3]) for row in stored}


@pytest.mark.parametrize(("topic", "query", "header", "user", "staff_id"), [row[1:] for row in WHO])
def test_who_sends(
    topic: dict[str, object], query: str, header: str, user: str, staff_id: object
) -> None:
    [asked] = parse_qs(query[1:]).get("u", [""])
    outcome = read(message(without("topic") | topic), Sender([header, asked, user], []), T)
    named = outcome.staff_id if isinstance(outcome, RangedBeacon) else None
    assert named == staff_id
    assert isinstance(outcome, RangedBeacon) or outcome is Ignored.NO_PERSON


@pytest.mark.parametrize(
    ("topic", "devices", "device"),
    [
        ("owntracks/jane/Phone", ["Pad"], "phone"),
        ("owntracks/jane/phone/beacon", [], "phone"),
        ("owntracks/jane", ["", "Pad"], "pad"),
        ("owntracks/jane", [], ""),
    ],
)
def test_which_device(topic: str, devices: list[str], device: str) -> None:
    outcome = read(message(without(topic=topic)), Sender([], devices), T)
    assert isinstance(outcome, RangedBeacon)
    assert outcome.device == device


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (basic("jane", "a:b")["Authorization"], LogIn("jane", "a:b")),
        (basic("jane", "")["Authorization"].replace("Basic", "bAsIc"), LogIn("jane", "")),
        (basic("jané", "ü")["Authorization"], LogIn("jané", "ü")),
        ("Basic amFuZQ==", LogIn("jane", "")),
        ("Bearer amFuZTph", LogIn("", "")),
        ("AWS amFuZTph", LogIn("", "")),
        ("Basic no base64!", LogIn("", "")),
        ("Basic amFu!ZTph", LogIn("", "")),
        ("Basic /w==", LogIn("", "")),
        ("", LogIn("", "")),
    ],
)
def test_a_log_in(header: str, expected: LogIn) -> None:
    assert log_in(header) == expected
