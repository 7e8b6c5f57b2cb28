"""Metres on a plan as degrees."""

import math

import pytest

from ingest.rules.plan_origin import PlanOrigin, plan_origin

# What a metre is: the Earth as a ball is wrong by 0.6 % at most.
DEGREE_METRES = math.pi * 6_371_000 / 180


@pytest.mark.parametrize("bearing", [0, 90, 180, 270, 35, -325])
@pytest.mark.parametrize(("latitude", "longitude"), [(1.377, 103.8489), (-60, 0), (78.2, -15.6)])
def test_right_is_right_of_the_top_and_down_is_away_from_it(
    latitude: float, longitude: float, bearing: float
) -> None:
    origin = PlanOrigin(latitude, longitude, bearing)
    for position, direction in (((100.0, 0.0), bearing + 90), ((0.0, 100.0), bearing + 180)):
        lat, lon = origin.degrees(position)
        north = (lat - latitude) * DEGREE_METRES
        east = (lon - longitude) * DEGREE_METRES * math.cos(math.radians(latitude))
        assert north == pytest.approx(100 * math.cos(math.radians(direction)), abs=0.8)
        assert east == pytest.approx(100 * math.sin(math.radians(direction)), abs=0.8)
    assert origin.degrees((0, 0)) == (latitude, longitude)


# WGS 84, as it is defined: half the equator's diameter, and by how much the Earth is flattened.
RADIUS_METRES, FLATTENING = 6_378_137.0, 1 / 298.257_223_563
FAR = 7.123_456_72  # degrees


@pytest.mark.parametrize("latitude", [0, 45, -33.3, 78.2, -80])
def test_a_degree_is_as_long_as_on_the_ellipsoid(latitude: float) -> None:
    squared = FLATTENING * (2 - FLATTENING)
    flattened = 1 - squared * math.sin(math.radians(latitude)) ** 2
    along = RADIUS_METRES * (1 - squared) / flattened**1.5
    around = RADIUS_METRES / math.sqrt(flattened) * math.cos(math.radians(latitude))
    origin = PlanOrigin(latitude, 10)
    expected = round(latitude + FAR, 7), 10
    assert origin.degrees((0, -along * math.radians(FAR))) == expected
    assert origin.degrees((around * math.radians(FAR), 0)) == (latitude, round(10 + FAR, 7))


def test_longitudes_go_on_around_the_earth() -> None:
    assert PlanOrigin(0, 180).degrees((0, 0)) == (0, -180)
    assert PlanOrigin(0, 179.9999).degrees((1000, 0)) == (0, -179.9911168)
    assert PlanOrigin(0, -179.9999).degrees((-1000, 0)) == (0, 179.9911168)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("", None),
        ("1.377 103.8489", PlanOrigin(1.377, 103.8489, 0)),
        ("-1.5  -0.1 359.5", PlanOrigin(-1.5, -0.1, 359.5)),
        ("80 -180 360", PlanOrigin(80, -180, 360)),
    ],
)
def test_a_setting_is_read(text: str, origin: PlanOrigin | None) -> None:
    assert plan_origin(text) == origin


@pytest.mark.parametrize(
    "text", ["1", "1,2", "1 2 3 4", "north 2", "81 2", "1 181", "1 2 361", "nan 2", "1 inf", " "]
)
def test_a_wrong_one_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="PLAN_ORIGIN must be a latitude from -80 to 80, a long"):
        plan_origin(text)
