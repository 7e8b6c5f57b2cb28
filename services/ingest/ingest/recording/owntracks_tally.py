"""What OwnTracks sent to this service since it started, counted: nothing is dropped unseen."""

import threading
from collections import Counter
from collections.abc import Mapping

from ingest.rules.owntracks import Ignored


class Tally:
    """Counts messages, those that are ignored by their reasons, which are a fixed set."""

    def __init__(self) -> None:
        self._stored = 0
        self._ignored: Counter[Ignored] = Counter()
        self._lock = threading.Lock()  # a WSGI server has threads

    @property
    def stored(self) -> int:
        """Return how many messages are detections that will not be lost."""
        return self._stored

    @property
    def ignored(self) -> Mapping[str, int]:
        """Return how many messages were ignored for each reason that there was."""
        with self._lock:
            return {reason.value: self._ignored[reason] for reason in sorted(self._ignored)}

    def count(self, reason: Ignored | None) -> None:
        """Count a message; None: its detection is stored."""
        with self._lock:
            if reason is None:
                self._stored += 1
            else:
                self._ignored[reason] += 1
