"""How full a battery is and when it has to be changed, by tables of readings."""

import random

import pytest

from ingest.rules.batteries import (
    FEWEST_READINGS,
    KINDS,
    LEAST_DAYS,
    Reading,
    battery,
    urgency,
)

START, DAY_SECONDS = 1_767_225_600, 86_400
MILLIVOLTS, PERCENT = "battery_mv", "battery_percent"


def series(*values: float, every: int = 1, first: int = 0) -> list[Reading]:
    """Return readings some days apart."""
    days = (first + every * number for number in range(len(values)))
    return [
        Reading(START + day * DAY_SECONDS, value) for day, value in zip(days, values, strict=True)
    ]


def falling(first: float, per_day: float, days: int) -> list[float]:
    return [first + per_day * day for day in range(days)]


def day_of(seconds: int | None) -> float | None:
    return None if seconds is None else (seconds - START) / DAY_SECONDS


@pytest.mark.parametrize(
    ("name", "values", "every", "per_day", "empty_on_day", "low"),
    [
        pytest.param(PERCENT, falling(90, -1, 30), 1, -1, 90, False, id="a percent a day"),
        pytest.param(PERCENT, falling(20, -1, 16), 1, -1, 20, True, id="empty within days"),
        pytest.param(MILLIVOLTS, falling(2900, -4, 41), 1, -4, 100, False, id="down to 2500 mV"),
        pytest.param(MILLIVOLTS, falling(2800, -10, 5), 4, -2.5, 120, False, id="now and then"),
        pytest.param(PERCENT, [80] * 30, 1, 0, None, False, id="it stays"),
        pytest.param(PERCENT, falling(50, 0.1, 30), 1, 0.1, None, False, id="it rises"),
        pytest.param(PERCENT, falling(99, -0.01, 30), 1, -0.01, None, False, id="in many years"),
        pytest.param(PERCENT, falling(50, -1, 14), 1, None, None, False, id="too few days"),
        pytest.param(PERCENT, falling(50, -1, 15), 1, -1, 50, False, id="just days enough"),
        pytest.param(PERCENT, falling(50, -5, 4), 10, None, None, False, id="too few readings"),
        pytest.param(PERCENT, [15], 1, None, None, True, id="one low reading"),
        pytest.param(PERCENT, [20], 1, None, None, True, id="a little"),
        pytest.param(PERCENT, [21], 1, None, None, False, id="more than a little"),
        pytest.param(PERCENT, falling(45, -1, 16), 1, -1, 45, True, id="empty in 30 days"),
        pytest.param(PERCENT, falling(46, -1, 16), 1, -1, 46, False, id="empty in 31 days"),
        pytest.param(PERCENT, falling(90, -0.06, 30), 1, -0.06, 1500, False, id="in four years"),
        pytest.param(
            PERCENT, falling(90, -90 / 1853.5, 30), 1, -0.049, 1853.5, False, id="in just five"
        ),
        pytest.param(
            PERCENT, falling(90, -90 / 1854.5, 30), 1, -0.049, None, False, id="in over five"
        ),
        pytest.param(
            PERCENT,
            [*falling(40, -1, 20), *falling(41, -1, 20)],
            1,
            -1,
            61,
            True,
            id="just a jump",
        ),
        pytest.param(PERCENT, falling(90, -1.6, 30), 1, -1.6, 56.25, True, id="at six o'clock"),
        pytest.param(MILLIVOLTS, [2490], 1, None, 0, True, id="below what is empty"),
        pytest.param(PERCENT, [100], 1, None, None, False, id="one high reading"),
        pytest.param(PERCENT, [0], 1, None, 0, True, id="empty, no trend"),
        pytest.param(MILLIVOLTS, [2500], 1, None, 0, True, id="voltage of an empty one"),
        pytest.param(MILLIVOLTS, [2590], 1, None, None, True, id="a low voltage"),
        pytest.param(MILLIVOLTS, [3600], 1, None, None, False, id="above what is full"),
        # The line is below the end already, the last reading is not.
        pytest.param(
            MILLIVOLTS, [3000] + [2510] * 14, 1, -12.25, 14, True, id="the line is further down"
        ),
        pytest.param(
            PERCENT,
            [*falling(30, -1, 20), *falling(100, -1, 20)],
            1,
            -1,
            120,
            False,
            id="another battery",
        ),
        pytest.param(
            MILLIVOLTS,
            [*falling(2700, -5, 30), 3050, 3045],
            1,
            None,
            None,
            False,
            id="another battery, since when it is too early",
        ),
        pytest.param(
            MILLIVOLTS,
            [*falling(2900, -4, 40), 2939],
            1,
            -3.307,
            118.2,
            False,
            id="a warm day",
        ),
        pytest.param(PERCENT, falling(100, -1, 80), 1, -1, 100, True, id="more days than are kept"),
    ],
)
def test_a_battery_by_its_readings(
    name: str,
    values: list[float],
    every: int,
    per_day: float | None,
    empty_on_day: float | None,
    low: object,
) -> None:
    readings = series(*values, every=every)
    told = battery({name: readings[-1]}, {name: random.Random(7).sample(readings, len(readings))})
    assert told is not None
    assert (told.value, told.at, told.unit) == (values[-1], readings[-1].at, KINDS[name].unit)
    assert told.per_day == (None if per_day is None else pytest.approx(per_day, abs=0.02))
    expected = None if empty_on_day is None else pytest.approx(empty_on_day, abs=0.1)
    assert day_of(told.empty_at) == expected
    assert told.low is low
    assert 0 <= told.left <= 1


def test_only_the_last_days_make_the_trend() -> None:
    old = series(*falling(100, -0.1, 20))
    new = series(*falling(90, -1, 60), first=20)
    told = battery({PERCENT: new[-1]}, {PERCENT: old + new})
    assert told is not None
    assert told.per_day == -1
    first = series(80, *[90] * 59)  # the first of 60 days counts, too
    told = battery({PERCENT: first[-1]}, {PERCENT: first})
    assert told is not None
    assert told.per_day is not None
    assert told.per_day > 0


def test_a_trend_counts_from_any_day_and_hour() -> None:
    hours = [3, 20, 9, 14] * 4
    times = [DAY_SECONDS * (1 + day) + 3600 * hour for day, hour in enumerate(hours)]
    readings = [Reading(at, 100 - at / DAY_SECONDS) for at in times]
    told = battery({PERCENT: readings[-1]}, {PERCENT: readings})
    assert told is not None
    assert (told.per_day, told.empty_at, told.low) == (-1, 100 * DAY_SECONDS, False)
    days = [Reading(DAY_SECONDS * (1 + day), 100 - max(0, day - 10)) for day in range(71)]
    told = battery({PERCENT: days[-1]}, {PERCENT: days})
    assert told is not None
    assert told.per_day == -1
    told = battery({PERCENT: days[14]}, {PERCENT: days[:15]})
    assert told is not None
    assert told.per_day is not None


def test_a_change_in_a_day_is_told_in_thousandths() -> None:
    readings = series(*falling(90, -0.12345, 30))
    told = battery({PERCENT: readings[-1]}, {PERCENT: readings})
    assert told is not None
    assert told.per_day == -0.123


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        (PERCENT, 100, 1),
        (PERCENT, 37, 0.37),
        (PERCENT, 0, 0),
        (MILLIVOLTS, 3100, 1),
        (MILLIVOLTS, 3000, 1),
        (MILLIVOLTS, 2777, 0.554),
        (MILLIVOLTS, 2500, 0),
        (MILLIVOLTS, 1800, 0),
    ],
)
def test_what_is_left_is_a_share(name: str, value: float, left: float) -> None:
    told = battery({name: Reading(START, value)}, {})
    assert told is not None
    assert told.left == left


def test_units_are_never_mixed_and_the_one_told_last_counts() -> None:
    volts, percents = series(*falling(2900, -4, 40)), series(*falling(90, -1, 41))
    both = {MILLIVOLTS: volts, PERCENT: percents}
    told = battery({MILLIVOLTS: volts[-1], PERCENT: percents[-1]}, both)
    assert told is not None
    assert (told.unit, told.per_day, day_of(told.empty_at)) == ("%", -1, 90)
    told = battery({MILLIVOLTS: volts[-1], PERCENT: percents[0]}, both)
    assert told is not None
    assert (told.unit, told.per_day) == ("mV", -4)
    told = battery({MILLIVOLTS: volts[-1], PERCENT: percents[-2]}, both)  # of one frame
    assert told is not None
    assert told.unit == "%"


def test_who_tells_of_no_battery_has_none() -> None:
    assert battery({"temperature_c": Reading(START, 20)}, {}) is None


def test_the_next_to_change_comes_first_then_the_lowest() -> None:
    soon, later = falling(30, -1, 20), falling(90, -1, 20)
    rows = {
        "nothing": None,
        "high": battery({MILLIVOLTS: Reading(START, 2990)}, {}),
        "lower": battery({PERCENT: Reading(START, 60)}, {}),
        "later": battery({PERCENT: series(*later)[-1]}, {PERCENT: series(*later)}),
        "soon": battery({PERCENT: series(*soon)[-1]}, {PERCENT: series(*soon)}),
    }
    assert sorted(rows, key=lambda name: urgency(rows[name])) == [
        "soon",
        "later",
        "lower",
        "high",
        "nothing",
    ]


def test_there_is_a_trend_from_the_least_of_readings_and_days_on() -> None:
    times = [
        START,
        *(START + LEAST_DAYS * DAY_SECONDS - back for back in range(FEWEST_READINGS - 2, -1, -1)),
    ]
    readings = [Reading(at, 90 - number) for number, at in enumerate(times)]
    for some, there in ((readings, True), (readings[1:], False), (readings[:-1], False)):
        told = battery({PERCENT: some[-1]}, {PERCENT: some})
        assert told is not None
        assert (told.per_day is not None) is there
