"""In which order levels lie: by the names that buildings give them, the lowest first.

The page has no such rule: it shows levels in the order in which the directory tells them.
"""

import re
import unicodedata
from functools import lru_cache

from ingest.rules.request_parameters import CACHED

_BELOW = re.compile(
    r"(?:b|u|p|ug|kg|ss|basement|parking) ?([0-9]{1,3})f?|([0-9]{1,3}) ?\.? ?(?:ug|kg|ss)"
)
_ABOVE = re.compile(
    r"(?:l|f|e|og|level|floor|etage|piso|stock)? ?([+-]?[0-9]{1,3}(?:\.[0-9])?)(?:st|nd|rd|th|er)?"
    r" ?\.? ?(?:f|og|floor|level|etage|piso|stock)?[a-z]?"
)
_NAMED = {
    -1.0: ("b", "u", "ug", "kg", "basement", "cellar", "keller"),
    -0.5: ("lg", "lower ground"),
    0.0: ("g", "gf", "eg", "l", "rdc", "ground", "ground floor", "erdgeschoss", "lobby"),
    0.5: ("m", "mezzanine"),
    1000.0: ("dg", "attic", "penthouse"),
    1001.0: ("r", "roof", "rooftop"),
}
_NUMBERS = {name: number for number, names in _NAMED.items() for name in names}
_OTHER, _UNKNOWN = 1002.0, 1003.0
_DIGITS = re.compile(r"([0-9]+)")


@lru_cache(CACHED)
def by_level(level: str) -> tuple[float, list[tuple[str, int]], str]:
    """Return the sort key of levels: by height, then by name; `unknown` comes last."""
    return _height(" ".join(level.casefold().split())), *by_name(level)


def by_name(name: str) -> tuple[list[tuple[str, int]], str]:
    """Return the sort key of names: "Room 2" before "Room 10", whatever the case."""
    parts = _DIGITS.split(unicodedata.normalize("NFD", " ".join(name.casefold().split())))
    numbers = [*map(int, parts[1::2]), 0]
    return list(zip(parts[::2], numbers, strict=True)), name


def _height(name: str) -> float:
    if name == "unknown":
        return _UNKNOWN
    if name in _NUMBERS:
        return _NUMBERS[name]
    if match := _BELOW.fullmatch(name):
        return -float(match[1] or match[2])
    match = _ABOVE.fullmatch(name)
    return float(match[1]) if match else _OTHER
