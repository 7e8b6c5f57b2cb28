"""Positions on the plan of a level that look wrong: they are stored, and told."""

from collections.abc import Sequence
from statistics import median

Position = tuple[float, float]

# A position is far out from so many times the usual distance to the middle of its level on, and no
# distance is small below the other. With fewer others than these nobody can tell.
FAR, NEAR_METRES, FEW = 20, 10.0, 3
_DEGREES = (180, 90)
_DECIMALS = 1e4  # nobody measures a room in tenths of a millimetre


def doubts(at: Position, others: Sequence[Position]) -> str:
    """Return what looks wrong with a position among the others of its level, "" for nothing."""
    for axis, metres in zip("xy", at, strict=True):
        along = [position["xy".index(axis)] for position in others]
        if len(along) < FEW:
            continue
        middle = median(along)
        usual = max(NEAR_METRES, median(abs(coordinate - middle) for coordinate in along))
        if abs(metres - middle) > FAR * usual:
            bounds = f"{min(along):g} to {max(along):g}"
            return f"{axis} is {metres:g}, far outside of its level, whose beacons are at {bounds}"
    if _is_degrees(at) or _is_degrees(at[::-1]):
        return "x and y look like degrees; they are metres on the plan of the level"
    return ""


def _is_degrees(at: Position) -> bool:
    in_range = all(abs(one) <= most for one, most in zip(at, _DEGREES, strict=True))
    return in_range and all(
        coordinate * _DECIMALS % 1 > 1e-6 and coordinate * _DECIMALS % 1 < 1 - 1e-6
        for coordinate in at
    )
