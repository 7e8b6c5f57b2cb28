"""Every parameter at the edges of what is taken, and the words with which the rest is refused."""

from typing import Any

import pytest

from ingest.errors import ParameterError
from ingest.rules import request_parameters as rules

NOW = 1_700_000_000.9
GOOD: dict[str, Any] = {"user_address": "7", "beacon_address": "C2A628384B08", "rssi": "-20"}
LAST = 253_402_300_799  # the end of the year 9999


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(ParameterError) as error:
        call(*arguments)
    return str(error.value)


def test_a_sighting_as_it_is_sent() -> None:
    assert rules.sighting(GOOD, NOW) == (7, "C2A628384B08", -20, None, None)
    more = {"timestamp": rules.EARLIEST, "event_id": "e"}
    assert rules.sighting(GOOD | more, NOW) == (7, "C2A628384B08", -20, rules.EARLIEST, "e")
    empty = {"timestamp": "", "event_id": None}
    assert rules.sighting(GOOD | empty, NOW) == (7, "C2A628384B08", -20, None, None)


@pytest.mark.parametrize(
    ("name", "edge", "beyond"),
    [
        ("timestamp", rules.EARLIEST, rules.EARLIEST - 1),
        ("timestamp", 1_700_086_400, 1_700_086_401),
        ("rssi", -127, -128),
        ("rssi", 20, 21),
    ],
)
def test_the_edges_of_a_sighting(name: str, edge: int, beyond: int) -> None:
    assert getattr(rules.sighting(GOOD | {name: edge}, NOW), name) == edge
    low, high = {"timestamp": (rules.EARLIEST, 1_700_086_400), "rssi": (-127, 20)}[name]
    said = refused(rules.sighting, GOOD | {name: beyond}, NOW)
    assert said == f"{name}: must be from {low} to {high}"


def test_a_range_of_old() -> None:
    parameters = {"staff_id": "7", "start_time": 5, "end_time": 5}
    assert rules.time_range(parameters) == (7, 5, 5)
    assert rules.time_range(parameters | {"start_time": 0, "end_time": LAST}) == (7, 0, LAST)
    said = refused(rules.time_range, parameters | {"start_time": 6})
    assert said == "start_time: must not be after end_time"
    for name in ("start_time", "end_time"):
        assert (
            refused(rules.time_range, parameters | {name: -1})
            == f"{name}: must be from 0 to {LAST}"
        )
        said = refused(rules.time_range, parameters | {name: LAST + 1})
        hint = f"not {LAST + 1}; send seconds, not milliseconds"
        assert said == f"{name}: must be from 0 to {LAST}, {hint}"


def test_a_range_of_today() -> None:
    assert rules.between({"staff_id": "a"}) == ("a", 0, LAST)
    assert rules.between({"staff_id": "a", "from": 5, "to": "5"}) == ("a", 5, 5)
    assert rules.between({"staff_id": "a", "from": 0, "to": LAST * 1000}) == ("a", 0, LAST)
    assert refused(rules.between, {"staff_id": "a", "from": 6, "to": 5}).startswith("from: must no")
    assert refused(rules.between, {"staff_id": "a", "from": -1}).startswith("from: must be from 0")
    assert refused(rules.between, {"staff_id": "a", "to": -1}).startswith("to: must be from 0")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("99999999999", 99_999_999_999),
        ("100000000000", 100_000_000),  # from here on it is milliseconds
        ("1700000000999", 1_700_000_000),
        ("1700000000.9", 1_700_000_000),
        (1_700_000_000.5, 1_700_000_000),
        ("+5", 5),
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("2023-11-14t22:13:20.999999999z", 1_700_000_000),
        ("2023-11-15 06:13:20+08:00", 1_700_000_000),
        ("2023-11-14T22:13+0000", 1_699_999_980),
        ("1969-12-31T23:59:59.5-00:00", -1),
    ],
)
def test_a_moment_in_any_form(text: object, seconds: int) -> None:
    assert rules.moment({"t": text}, "t", -1, LAST) == seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2023-02-30T00:00:00Z", "is not a time of the calendar"),
        ("2023-11-14T22:13:20", "must be unix seconds, unix milliseconds or ISO 8601 with a time"),
        ("soon", "must be unix seconds"),
        ("1.", "must be unix seconds"),
        ("-100000000000", "must be from 0 to 9 (unix seconds), not -100000000000"),
        ("10", "must be from 0 to 9 (unix seconds), not 10"),
    ],
)
def test_a_moment_that_is_none(text: str, said: str) -> None:
    assert refused(rules.moment, {"t": text}, "t", 0, 9).startswith(f"t: {said}")


@pytest.mark.parametrize(
    "day", ["2023-11-14T22:13:20", "2023-11-14 22:13", "2023-11-14T22:13:20.5"]
)
def test_a_plus_that_an_address_made_a_blank_is_told(day: str) -> None:
    for zone in (" 08:00", " 0800"):
        said = refused(rules.moment, {"t": day + zone}, "t", 0, LAST)
        assert said.endswith("; in an address, + is written %2B")
    assert "%2B" not in refused(rules.moment, {"t": day}, "t", 0, LAST)


@pytest.mark.parametrize("dots", [".", ".."])
def test_an_id_that_leads_elsewhere_in_an_address_is_none(dots: str) -> None:
    assert refused(rules.staff_id, {"n": dots}, "n").endswith(", not dots alone")
    for good in ("...", ".a", "..7", "a."):
        assert rules.staff_id({"n": good}, "n") == good


def test_the_edges_of_a_moment() -> None:
    assert [rules.moment({"t": text}, "t", 3, 9) for text in ("3", "9")] == [3, 9]
    assert "not 2" in refused(rules.moment, {"t": "2"}, "t", 3, 9)


def test_a_flag() -> None:
    flags = {"1": True, "true": True, "TRUE": True, "0": False, "False": False, "": False}
    assert {text: rules.flag({"f": text}, "f") for text in flags} == flags
    assert rules.flag({}, "f") is False
    assert refused(rules.flag, {"f": "yes"}, "f") == "f: must be 1 or 0"


def test_a_name_for_people() -> None:
    for good in ("x", "é" * 64, 'a "b" \\', "7"):
        assert rules.printable({"n": good}, "n") == good
    said = refused(rules.printable, {"n": "é" * 65}, "n")
    assert said == "n: must be 1 to 64 printable characters"
    for bad in ("a\u0007", "a\nb", "a\u200bb", "a\u2028b", "a\ud800"):
        said = refused(rules.printable, {"n": bad}, "n")
        assert said == f"n: must be printable: U+{ord(bad[1]):04X} is not"
    assert refused(rules.printable, {"n": "  "}, "n").endswith(
        "must be 1 to 64 printable characters"
    )


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        *[(f"Room{blank}1", "Room 1") for blank in "\u00a0\u2003\u2009\u202f\u3000"],
        *[(f"R{unseen}oom 1", "Room 1") for unseen in "\u200b\u2060\ufeff\u00ad\u200d\u200e"],
        *[("Ku\u0308che", "K\u00fcche"), ("\u212b", "\u00c5"), ("\u3000 A \u00a0", "A")],
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),  # Persian needs its joiner
        ("Room  1", "Room  1"),
    ],
)
def test_a_place_has_one_spelling_of_what_looks_the_same(sent: str, stored: str) -> None:
    assert rules.place_name({"n": sent}, "n") == stored
    assert rules.place_name({"n": stored}, "n") == stored


def test_metres() -> None:
    assert rules.metres({}, "x") is rules.metres({"x": ""}, "x") is None
    for good in ("-1000000", "1e6", "1.5", 0, -0.25, " 2 "):
        assert rules.metres({"x": good}, "x") == float(good)
    for bad in ("1000000.1", "-1e7", "nan", "inf", "1_0", "٣", "a"):
        said = refused(rules.metres, {"x": bad}, "x")
        assert said == "x: must be metres from -1000000 to 1000000"


def test_an_event_id() -> None:
    assert rules.event_id({}) is rules.event_id({"event_id": ""}) is None
    for good in ("!", "~" * 128):
        assert rules.event_id({"event_id": good}) == good
    for bad in ("a b", "é", "x" * 129, "a\x7f"):
        said = refused(rules.event_id, {"event_id": bad})
        assert said == "event_id: must be 1 to 128 printable ASCII characters, no spaces"


def test_a_staff_id_is_a_number_as_long_as_javascript_has_it() -> None:
    texts: list[Any] = ["0", str(2**53 - 1), str(2**53), str(2**53 + 1), "9" * 19, "9" * 20, "00"]
    staff_ids = [rules.staff_id({"n": text}, "n") for text in texts]
    assert staff_ids == [0, 2**53 - 1, *texts[2:]]
    assert type(staff_ids[0]) is type(staff_ids[1]) is int
    assert rules.staff_id({"n": 2**53 + 1}, "n") == str(2**53 + 1)  # a JSON number is exact here


def test_what_is_no_staff_id_and_no_address() -> None:
    bad: object
    for bad in (" ", "a b", "x" * 65, "a\0", "7\n8", "é", "٣", "{$ne:1}", {"$gt": ""}):
        assert refused(rules.staff_id, {"n": bad}, "n").startswith("n: "), bad
    assert rules.staff_id({"n": "x" * 64}, "n") == "x" * 64
    assert rules.staff_id({"n": " 7 "}, "n") == 7
    for bad in ("C2A628384B0", "C2A628384B081", "G2A628384B08", 12, True, [], {}, None):
        assert refused(rules.any_beacon, {"n": bad}, "n").startswith("n: "), bad
    for written in ("c2a628384b08", "C2:A6:28:38:4B:08", "c2-a6-28-38-4b-08"):
        assert rules.any_beacon({"n": written}, "n") == "C2A628384B08"


def test_staff_ids_sort_numbers_first() -> None:
    ids: list[rules.StaffId] = ["b", 10, "a", 9, "10x"]
    assert sorted(ids, key=rules.by_staff_id) == [9, 10, "10x", "a", "b"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda parameters: rules.staff_id(parameters, "n"), "n: must be 1 to 64 letters, digits"),
        (lambda parameters: rules.integer(parameters, "n", 0, 9), "n: must be a whole number"),
        (lambda parameters: rules.seconds(parameters, "n", 0, 9), "n: must be a whole number"),
    ],
)
def test_what_is_no_value_is_told_in_words(call: Any, said: str) -> None:
    assert refused(call, {"n": "???"}).startswith(said)
    missing: dict[str, Any]
    for missing in ({}, {"n": None}, {"n": ""}):
        assert refused(call, missing) == "n: is missing"
    wrong: object
    for wrong in (True, [], {}, b"7"):
        assert refused(call, {"n": wrong}) == "n: must be text or a number"
    assert refused(call, {"n": "7" + " " * 256}) == "n: must be at most 256 characters"
    assert not refused(call, {"n": "?" + " " * 255}).endswith("256 characters")


def test_a_number_for_a_staff_id_is_whole() -> None:
    for bad in (7.5, float("inf"), float("nan")):
        said = refused(rules.staff_id, {"n": bad}, "n")
        assert said == "n: must be text or a whole number"
    assert rules.staff_id({"n": 1e3}, "n") == 1000


def test_whole_numbers_of_up_to_thirty_digits() -> None:
    assert rules.integer({"n": "9" * 30}, "n", 0, 10**30) == 10**30 - 1
    assert rules.integer({"n": "5.000"}, "n", 5, 5) == 5
    assert refused(rules.integer, {"n": "9" * 31}, "n", 0, 10**40) == "n: must be a whole number"
    said = refused(rules.integer, {"n": LAST}, "n", 0, 9)
    assert said == "n: must be from 0 to 9"


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        *[(seven, 7) for seven in (7, 7.0, "7", "7.0", "7.00", "7.0E0")],
        *[(zero, 0) for zero in (0.0, -0.0, "0.0", "-0.0")],
        *[(double, 12_345_678) for double in (12_345_678.0, "1.2345678E7", "1.2345678e+07")],
        *[(double, 2**53 - 1) for double in (9.007199254740991e15, "9.007199254740991E15")],
    ],
)
def test_a_number_is_the_same_in_every_form(printed: Any, number: int) -> None:
    staff_id = rules.staff_id({"n": printed}, "n")
    assert (staff_id, type(staff_id)) == (number, int)
    for read in (rules.integer, rules.seconds):
        assert read({"n": printed}, "n", 0, 2**53) == number


@pytest.mark.parametrize("name", ["1E7", "007.0", "7.5", "1.0.0", "7.", ".5", "v7.0", "1.5E0"])
def test_a_name_that_looks_like_a_number_is_a_name(name: str) -> None:
    assert rules.staff_id({"n": name}, "n") == name


@pytest.mark.parametrize("double", [9.1e15, 8.9445e19, 1e300, "9.1E15", "8.9445E19", "1.5E99"])
def test_a_double_that_is_not_exact_names_nobody(double: Any) -> None:
    assert refused(rules.staff_id, {"n": double}, "n") == f"n: {rules.NOT_EXACT}"


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        *[(f"1700000000.{fraction}", 1_700_000_000) for fraction in ("0", "5", "999999999")],
        *[("1.7E9", 1_700_000_000), ("1.7000000005E9", 1_700_000_000), (1.7e9, 1_700_000_000)],
        (1_700_000_000.999, 1_700_000_000),
    ],
)
def test_fractions_of_a_second_are_cut(printed: Any, seconds: int) -> None:
    assert rules.sighting(GOOD | {"timestamp": printed}, NOW).timestamp == seconds
    parameters = {"staff_id": 1, "start_time": printed, "end_time": printed}
    assert rules.time_range(parameters) == (1, seconds, seconds)
    assert rules.moment({"t": printed}, "t", 0, LAST) == seconds


@pytest.mark.parametrize(
    ("sent", "unit"),
    [
        ("1700000000123", "milliseconds"),
        (1_700_000_000_123, "milliseconds"),
        ("1.700000000123E12", "milliseconds"),
        ("1700000000123456", "microseconds"),
        (1_700_000_000_123_456, "microseconds"),
        ("1700000000123456789", "nanoseconds"),
    ],
)
def test_a_time_in_another_unit_is_told_what_was_sent(sent: Any, unit: str) -> None:
    said = refused(rules.sighting, GOOD | {"timestamp": sent}, NOW)
    assert said.endswith(f", not {sent}; send seconds, not {unit}")
    if unit == "milliseconds":
        assert rules.moment({"t": sent}, "t", 0, LAST) == 1_700_000_000
    else:
        said = refused(rules.moment, {"t": sent}, "t", 0, LAST)
        assert said.endswith(f"not {sent}; send seconds or milliseconds, not {unit}")


@pytest.mark.parametrize(
    ("sent", "dbm"),
    [
        *[
            ("-67", -67),
            (-67, -67),
            (-67.25, -67),
            ("-63.47", -63),
            ("-63.5", -64),
            ("-6.7E1", -67),
        ],
        *[("-127.4", -127), ("20.4", 20), ("-1", -1), ("1", 1)],
        *[(none, None) for none in (0, "0", 0.0, "-0.0", 127, "127", "127.0", None, "", " ")],
        *[(none, None) for none in ("null", "NaN", float("nan"))],
    ],
)
def test_a_strength_is_rounded_or_not_known(sent: Any, dbm: int | None) -> None:
    assert rules.sighting(GOOD | {"rssi": sent}, NOW).rssi == dbm


@pytest.mark.parametrize("bad", ["-127.6", "20.6", 126, 128, 193, "loud", True, [], "undefined"])
def test_what_is_no_strength_is_refused(bad: Any) -> None:
    assert refused(rules.sighting, GOOD | {"rssi": bad}, NOW).startswith("rssi: must be ")
    without = {name: value for name, value in GOOD.items() if name != "rssi"}
    assert refused(rules.sighting, without, NOW) == "rssi: is missing"


@pytest.mark.parametrize("none", ["0" * 12, "00:00:00:00:00:00", "f" * 12, "FF-FF-FF-FF-FF-FF"])
def test_an_address_that_stands_for_none_is_refused_by_name(none: str) -> None:
    said = refused(rules.sighting, GOOD | {"beacon_address": none}, NOW)
    digits = none[0].upper() * 12
    assert said.endswith(f"must be the MAC address of a beacon: {digits} stands for none")
    assert rules.any_beacon({"m": none}, "m") == digits  # one that was registered can be removed


def test_values_that_come_all_the_time_are_kept() -> None:
    for cached in (
        rules._beacon_id,
        rules._number,
        rules._strength,
        rules._staff_id,
        rules.by_staff_id,
    ):
        assert cached.cache_parameters()["maxsize"] == 1024


def test_a_device_has_a_clock_of_2020_or_later() -> None:
    assert rules.EARLIEST == 1_577_836_800


@pytest.mark.parametrize("zone", ["Asia/Singapore", "Etc/GMT+8", "UTC"])
def test_a_zone_is_a_name(zone: str) -> None:
    assert rules.zone({"zone": zone}, "zone") == zone


def test_no_zone_is_none() -> None:
    assert rules.zone({}, "zone") == rules.zone({"zone": ""}, "zone") == ""


@pytest.mark.parametrize("bad", ["a b", "x" * 65, "Å"])
def test_what_is_no_zone_is_named(bad: str) -> None:
    with pytest.raises(ParameterError, match=r"^zone: must be a time zone"):
        rules.zone({"zone": bad}, "zone")
