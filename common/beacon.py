"""A beacon of the directory, and where it hangs."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

# Ids of one beacon beside its own: each way in which phones and gateways hear it.
MAX_ALIASES = 7
TOO_MANY_ALIASES = f"must be at most {MAX_ALIASES} ids beside that of the beacon itself"
MAX_METRES = 1e6
NOT_METRES = f"must be metres from -{MAX_METRES:.0f} to {MAX_METRES:.0f}"
ONE_AXIS = "must be given together with y, or neither"


class Beacon(NamedTuple):
    """One beacon and where it hangs; x and y are metres on the plan of its level.

    `mac` is the id by which the directory lists it, `aliases` are its others, sorted.
    """

    mac: str
    level: str
    location: str
    x: float | None = None
    y: float | None = None
    aliases: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Return all its ids, its own first."""
        return self.mac, *self.aliases

    def with_aliases(self, aliases: Iterable[str]) -> "Beacon":
        """Return the beacon with these other ids, each once."""
        return self._replace(aliases=tuple(sorted({*aliases} - {self.mac})))

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Beacon":
        """Read a document of the database."""
        at = document.get("position") or {}
        place = (document["mac"], document["level"], document["location"])
        return cls(*place, at.get("x"), at.get("y"), tuple(document.get("aliases", ())))

    def document(self) -> dict[str, Any]:
        """Return the document to store."""
        document: dict[str, Any] = {"_id": self.mac, "mac": self.mac}
        document |= {"level": self.level, "location": self.location}
        if self.x is not None:
            document["position"] = {"x": self.x, "y": self.y}
        if self.aliases:
            document["aliases"] = list(self.aliases)
        return document


def metres(text: str) -> float | None:
    """Return a coordinate, None where the text is none."""
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if abs(number) <= MAX_METRES else None
