"""Every good and bad value of every parameter."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import ParameterError
from ingest.rules import request_parameters

NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("given_id", "stored"),
    [
        ("0", 0),
        ("14", 14),
        (7, 7),
        (7.0, 7),
        (" 7 ", 7),
        ("007", "007"),
        ("-5", "-5"),
        ("SDA-001", "SDA-001"),
        ("a.b_c", "a.b_c"),
        ("9007199254740991", 2**53 - 1),
        ("9007199254740992", "9007199254740992"),
        ("x" * 64, "x" * 64),
    ],
)
def test_staff_id_has_one_type_and_form(given_id: object, stored: object) -> None:
    parsed = request_parameters.staff_id({"staff_id": given_id}, "staff_id")
    assert (parsed, type(parsed)) == (stored, type(stored))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "",
        " ",
        "a b",
        "x" * 65,
        " " * 256 + "7",
        "a\0",
        "7\n8",
        "é",
        "٣",
        True,
        {"$gt": ""},
        ["7"],
        "{$ne:1}",
        7.5,
        float("inf"),  # JSON's 1e400
        float("nan"),
    ],
)
def test_bad_staff_id_is_named(bad: object) -> None:
    with pytest.raises(ParameterError, match=r"^staff_id: "):
        request_parameters.staff_id({"staff_id": bad}, "staff_id")


@pytest.mark.parametrize(
    "mac", ["C2A628384B08", "c2a628384b08", "C2:A6:28:38:4B:08", "c2-a6-28-38-4b-08"]
)
def test_mac_in_any_writing(mac: str) -> None:
    assert request_parameters.mac({"m": mac}, "m") == "C2A628384B08"


@pytest.mark.parametrize(
    "mac", ["", "C2A628384B0", "C2A628384B081", "G2A628384B08", 12, {"$gt": ""}]
)
def test_bad_mac_is_named(mac: object) -> None:
    with pytest.raises(ParameterError, match=r"^m: "):
        request_parameters.mac({"m": mac}, "m")


@pytest.mark.parametrize(
    ("text", "number"),
    [("-20", -20), (-20, -20), ("+5", 5), (-20.0, -20), ("-20.0", -20), ("1e1", 10)],
)
def test_integer(text: object, number: int) -> None:
    assert request_parameters.integer({"rssi": text}, "rssi", -127, 20) == number


@pytest.mark.parametrize(
    "bad",
    [
        *(None, "", "x", "1_0", "0x10", "1e", "-20.5", "--2", "٣", "1" * 40, "1" * 5000),
        *(-128, 21, 10**30, float("nan"), float("inf"), 1e300, True, {"$gt": 0}, [1]),
    ],
)
def test_bad_integer_is_named(bad: object) -> None:
    with pytest.raises(ParameterError, match=r"^rssi: "):
        request_parameters.integer({"rssi": bad}, "rssi", -127, 20)


@pytest.mark.parametrize("timestamp", [-1, NOW + 86_401, 1_700_000_000_000, 10**18, "soon"])
def test_bad_device_time_is_named(timestamp: object) -> None:
    parameters = {"user_address": 1, "beacon_address": "C2A628384B08", "rssi": -20}
    with pytest.raises(ParameterError, match=r"^timestamp: "):
        request_parameters.sighting(parameters | {"timestamp": timestamp}, NOW)


def test_milliseconds_are_recognised() -> None:
    parameters = {"staff_id": 1, "start_time": 0, "end_time": 1_700_000_000_000}
    with pytest.raises(ParameterError, match="send seconds, not milliseconds"):
        request_parameters.time_range(parameters)


def test_range_must_run_forwards() -> None:
    with pytest.raises(ParameterError, match=r"^start_time: must not be after end_time"):
        request_parameters.time_range({"staff_id": 1, "start_time": 2, "end_time": 1})


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
NAMES = ["user_address", "beacon_address", "rssi", "timestamp", "event_id"]
NAMES += ["staff_id", "start_time", "end_time"]


@pytest.mark.long
@given(st.dictionaries(st.sampled_from(NAMES), anything))
def test_nothing_but_a_parameter_error_ever_comes_out(parameters: dict[str, Any]) -> None:
    for parse in (
        lambda: request_parameters.sighting(parameters, NOW),
        lambda: request_parameters.time_range(parameters),
    ):
        with contextlib.suppress(ParameterError):
            parse()
