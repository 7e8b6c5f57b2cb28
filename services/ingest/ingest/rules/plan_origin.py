"""Where on Earth the plans lie: metres on a plan as degrees (WGS 84)."""

import math
from typing import NamedTuple

from ingest.rules.positions import Position

# Further north or south a degree of longitude is too short for plans that reach as far as ours may.
MAX_LATITUDE = 80
_RADIUS_METRES, _ECCENTRICITY = 6_378_137.0, 0.081_819_190_842_6


class PlanOrigin(NamedTuple):
    """Where the plans have x = 0 and y = 0, in degrees, and whither their top shows.

    `bearing`: degrees from north, clockwise. On a plan x goes right and y down, as they are drawn.
    """

    latitude: float
    longitude: float
    bearing: float = 0.0

    def degrees(self, position: Position) -> tuple[float, float]:
        """Return latitude and longitude of a position, to a centimetre."""
        x, y = position
        turned = math.radians(self.bearing)
        east = x * math.cos(turned) - y * math.sin(turned)
        north = -x * math.sin(turned) - y * math.cos(turned)
        flattened = 1 - (_ECCENTRICITY * math.sin(math.radians(self.latitude))) ** 2
        around = _RADIUS_METRES / math.sqrt(flattened)
        along = around * (1 - _ECCENTRICITY**2) / flattened
        latitude = self.latitude + math.degrees(north / along)
        longitude = math.degrees(east / (around * math.cos(math.radians(self.latitude))))
        wrapped = (round(self.longitude + longitude, 7) + 180) % 360 - 180
        return round(latitude, 7), round(wrapped, 7)


def plan_origin(text: str) -> PlanOrigin | None:
    """Return the origin of a setting, None of an empty one. Raises ValueError."""
    if not text:
        return None
    try:
        origin = PlanOrigin(*map(float, text.split()))
    except (ValueError, TypeError):
        origin = PlanOrigin(math.nan, math.nan)
    bounds = (MAX_LATITUDE, 180, 360)
    if not all(abs(value) <= most for value, most in zip(origin, bounds, strict=True)):
        raise ValueError(
            f"PLAN_ORIGIN must be a latitude from -{MAX_LATITUDE} to {MAX_LATITUDE}, a longitude"
            " and, where the top of the plans is not north, its bearing, in degrees with blanks"
            f" between, not {text!r}"
        )
    return origin
