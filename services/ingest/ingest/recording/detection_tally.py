"""What became of the detections that came in since the service started, counted."""

import time
from collections.abc import Sequence

from common.metrics import DETECTIONS, Histogram
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.storage.detections.documents import Document


class DetectionTally:
    """Counts them by their outcomes, and how many were stored together; of one thread."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(Outcome, 0)  # a first error is seen only after a 0
        self.groups = Histogram(DETECTIONS)
        self.last_at: float | None = None  # unix seconds of the last that will not be lost

    def count(
        self, requests: Sequence[list[Document]], results: Sequence[list[Outcome] | Exception]
    ) -> None:
        """Count a group: the detections of several requests, and what became of each."""
        for request, result in zip(requests, results, strict=True):
            if isinstance(result, Exception):
                unknown = [Outcome.UNAVAILABLE] * len(request)
                result = result.outcomes if isinstance(result, PartlyStored) else unknown
            for outcome in result:
                self.outcomes[outcome] += 1
            if Outcome.STORED in result or Outcome.QUEUED in result:
                self.last_at = time.time()
        self.groups.observe(sum(map(len, requests)))
