"""What the server must hold of each staff member, and whether its extracts say so."""

from loadtests.engine.client import Response, WrongResponse
from loadtests.engine.endpoints import STORED, Place, newest_first


class History:
    """One staff member's documents: those we know to the letter, and how many came since."""

    def __init__(self) -> None:
        self.preloaded: list[Place] = []  # oldest first, times all different
        self.sent = 0  # live inserts without a time of their own
        self.acknowledged = 0
        self.queued = 0  # of those acknowledged: may still wait for the database
        self.unknown = 0  # sent, and no response came: may be there or not
        self._right: bytes | None = None  # the last body that was found right

    def preload(self, places: list[Place]) -> None:
        """Add documents newer than all that are there."""
        self.preloaded += places
        self._right = None

    def count(self, response: Response, size: int) -> None:
        """Note what became of that many detections."""
        if response.status in STORED:
            self.acknowledged += size
            self.queued += size * (response.status == 202)
        elif response.status == 0 or response.status >= 500:
            self.unknown += size

    def verify(self, response: Response) -> None:
        """Check an extract while nobody writes: to the letter, or by number after live inserts."""
        if response.body == self._right:
            return
        found = newest_first(response)
        if self.acknowledged or self.unknown:
            self._verify_count(len(found), self.acknowledged, self.acknowledged + self.unknown)
        elif found != self.preloaded[::-1]:
            stored = len(self.preloaded)
            raise WrongResponse(f"{len(found)} documents, not the {stored} that are stored")
        self._right = response.body

    def verify_live(self, response: Response, acknowledged_before: int) -> None:
        """Check an extract while others write: all acknowledged before, nothing unsent."""
        self._verify_count(len(newest_first(response)), acknowledged_before, self.sent)

    def _verify_count(self, found: int, least: int, most: int) -> None:
        """Raise WrongResponse when live documents are missing or too many."""
        live = found - len(self.preloaded)
        if not least <= live <= most:
            least, most = (len(self.preloaded) + count for count in (least, most))
            raise WrongResponse(f"{found} documents instead of {least} to {most}")
