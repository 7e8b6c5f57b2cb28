"""What the server must hold, and whether its answers say so."""

import json
from typing import NamedTuple

from loadtests.client import Answer, WrongAnswer

ADDED = b"New Beacon Detection Added"


class Place(NamedTuple):
    """One document of an extract."""

    level: str
    location: str
    timestamp: int


class History:
    """One staff member's documents: those we know to the letter, and how many came since."""

    def __init__(self) -> None:
        self.filled: list[Place] = []  # oldest first, times all different
        self.sent = 0  # live inserts without a time of their own
        self.acknowledged = 0
        self.queued = 0  # of those acknowledged: may still wait for the database
        self.unknown = 0  # sent, and no answer came: may be there or not
        self._right: bytes | None = None  # the last body that was found right

    def fill(self, places: list[Place]) -> None:
        """Add documents newer than all that are there."""
        self.filled += places
        self._right = None

    def count(self, answer: Answer, size: int) -> None:
        """Note what became of that many detections."""
        if answer.status in (200, 202):
            self.acknowledged += size
            self.queued += size * (answer.status == 202)
        elif answer.status == 0 or answer.status >= 500:
            self.unknown += size

    def verify(self, answer: Answer) -> None:
        """Check an answer while nobody writes: to the letter, or by number after live inserts."""
        if answer.body == self._right:
            return
        found = newest_first(answer)
        if self.acknowledged or self.unknown:
            self.verify_count(len(found), self.acknowledged)
        elif found != self.filled[::-1]:
            raise WrongAnswer(f"{len(found)} documents, not the {len(self.filled)} that are stored")
        self._right = answer.body

    def verify_live(self, answer: Answer, acknowledged_before: int) -> None:
        """Check an answer while others write: all that was acknowledged before, nothing unsent."""
        self.verify_count(len(newest_first(answer)), acknowledged_before, self.sent)

    def verify_count(self, found: int, least: int, most: int | None = None) -> None:
        """Raise WrongAnswer when documents are missing or too many; beside those of `fill`."""
        least += len(self.filled)
        most = least + self.unknown if most is None else len(self.filled) + most
        if not least <= found <= most:
            raise WrongAnswer(f"{found} documents instead of {least} to {most}")


def newest_first(answer: Answer) -> list[Place]:
    """Return an extract's documents; WrongAnswer when it is not one, or in another order."""
    try:
        found = [
            Place(one["level"], one["location"], one["timestamp"])
            for one in json.loads(answer.body)["location"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongAnswer(f"no extract ({error!r}): {answer.body[:80]!r}") from error
    times = [place.timestamp for place in found]
    if times != sorted(times, reverse=True):
        raise WrongAnswer("not newest first")
    return found


def verify_batch(answer: Answer, size: int) -> None:
    """Check that a batch was taken whole."""
    try:
        counts = json.loads(answer.body)["counts"]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongAnswer(f"no answer to a batch: {answer.body[:80]!r}") from error
    if counts.get("stored", 0) + counts.get("queued", 0) != size:
        raise WrongAnswer(f"{counts} of {size}")


def verify_added(answer: Answer) -> None:
    """Check the answer to an insert."""
    if answer.body.strip() != ADDED:
        raise WrongAnswer(f"not {ADDED!r}: {answer.body[:80]!r}")
