"""How long a disk lasts, at the rate of the last week."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Fewer say nothing of what one takes: each file has a smallest size.
ENOUGH_DETECTIONS = 10_000
# Within so many days somebody has to do something.
LOW_DAYS = 14
# How many days what is sealed may be late, by turns and by how long its rows stay, until it is
# foreseen that rows go on to grow.
SPARE_DAYS = 1


@dataclass
class Kept:
    """How many detections are kept in some way, and the bytes of that on a disk."""

    detections: int = 0
    bytes: int = 0
    index_bytes: int = 0

    def __add__(self, other: "Kept") -> "Kept":
        """Return both together."""
        return Kept(
            self.detections + other.detections,
            self.bytes + other.bytes,
            self.index_bytes + other.index_bytes,
        )

    @property
    def bytes_each(self) -> float | None:
        """Return what one takes with its indexes; None where they are too few to tell."""
        if self.detections < ENOUGH_DETECTIONS:
            return None
        return (self.bytes + self.index_bytes) / self.detections


class Disk(NamedTuple):
    """A disk, and what all detections on it take of it: those that are rows, and sealed ones."""

    free_bytes: int
    rows: Kept
    sealed: Kept


class DiskUse(NamedTuple):
    """What detections take of the disks; None is what cannot be told yet."""

    free_bytes: int  # of the disk that has the fewest
    detection_bytes: float | None  # each, with its indexes
    sealed_bytes: float | None  # each of those that are sealed
    detections_a_day: float | None
    days_left: float | None  # until the first disk is full; None also where it never is
    retention_days: int  # 0: all are kept
    seal_hours: int  # 0: none is sealed

    @property
    def is_low(self) -> bool:
        """Tell whether a disk is full within LOW_DAYS."""
        return self.days_left is not None and self.days_left < LOW_DAYS


def disk_use(
    disks: Sequence[Disk], detections_a_day: float | None, retention_days: int, seal_hours: int
) -> DiskUse:
    """Return what detections take, if each disk goes on to get its share of them.

    What else is on a disk stays as it is. With a retention they grow until there are as many as
    come in so many days. Where all that is old is sealed in time, those of them grow
    that are sealed, else the rows.
    """
    rows = sum((disk.rows for disk in disks), Kept())
    sealed = sum((disk.sealed for disk in disks), Kept())
    every = rows + sealed
    days_left = None
    bytes_each = every.bytes_each
    if bytes_each and detections_a_day:
        in_time = detections_a_day * (seal_hours / 24 + SPARE_DAYS)
        growing = sealed if seal_hours and rows.detections <= in_time else rows
        a_day = (growing.bytes_each or bytes_each) * detections_a_day / every.detections
        of_disks = ((disk.free_bytes, disk.rows + disk.sealed) for disk in disks)
        days_left = min(
            free / (a_day * kept.detections) for free, kept in of_disks if kept.detections
        )
        if retention_days and days_left > retention_days - every.detections / detections_a_day:
            days_left = None
    return DiskUse(
        min((disk.free_bytes for disk in disks), default=0),
        bytes_each,
        sealed.bytes_each,
        detections_a_day,
        days_left,
        retention_days,
        seal_hours,
    )
