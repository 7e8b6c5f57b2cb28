"""What becomes of a detection."""

import enum

from ingest.errors import StoreUnavailable


class Outcome(enum.StrEnum):
    """What became of a detection; the first three mean that it will not be lost."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    QUEUED = "queued"
    REJECTED = "rejected"  # MongoDB refuses this document, and would refuse it again
    UNAVAILABLE = "unavailable"  # nothing is promised of it


class PartlyStored(StoreUnavailable):
    """A shard did not take some of a request's detections, nor did the spool."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__("a shard is away and the spool is full")
        self.outcomes = outcomes
