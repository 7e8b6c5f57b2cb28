"""How long a disk lasts."""

import pytest

from ingest.rules.disk_use import Disk, DiskUse, Kept, disk_use

MB = 1_000_000


def rows(free: int, detections: int, size: int) -> Disk:
    """Return a disk where nothing is sealed."""
    return Disk(free, Kept(detections, size // 2, size - size // 2), Kept())


def unsealed(disks: list[Disk], a_day: float | None, retention_days: int) -> DiskUse:
    return disk_use(disks, a_day, retention_days, 0)


@pytest.mark.parametrize(
    ("disks", "a_day", "left", "is_low"),
    [
        ([], 1, None, False),
        ([rows(1000 * MB, 9999, 2 * MB)], 1, None, False),
        ([rows(1000 * MB, 10_000, 2 * MB)], None, None, False),
        ([rows(1000 * MB, 10_000, 2 * MB)], 0, None, False),
        ([rows(1000 * MB, 10_000, 2 * MB)], 50_000, 100, False),
        ([rows(140 * MB, 10_000, 2 * MB)], 50_000, 14, False),
        ([rows(139 * MB, 10_000, 2 * MB)], 50_000, 13.9, True),
        ([rows(0, 10_000, 2 * MB)], 50_000, 0, True),
        # The one that is full first; one that gets nothing is never full.
        ([rows(1000 * MB, 10_000, 2 * MB), rows(100 * MB, 10_000, 2 * MB)], 50_000, 20, False),
        ([rows(1000 * MB, 10_000, 2 * MB), rows(0, 0, 0)], 50_000, 100, False),
    ],
)
def test_how_long_a_disk_lasts(
    disks: list[Disk], a_day: float | None, left: float | None, is_low: object
) -> None:
    use = unsealed(disks, a_day, 0)
    assert (use.days_left, use.is_low) == (left, is_low)


def test_what_a_detection_takes_is_the_mean_of_all_disks() -> None:
    use = unsealed([rows(5, 6000, 600_000), rows(4, 6000, 1_203_000)], 1, 0)
    assert (use.detection_bytes, use.free_bytes) == (150.25, 4)
    assert unsealed([], 1, 0).free_bytes == 0


@pytest.mark.parametrize(
    ("retention_days", "left"),
    [
        (0, 100),
        (365, 100),
        # Those of 2.5 days are there: 99.5 days more, and no more are kept.
        (103, 100),
        (102, None),
        (1, None),
    ],
)
def test_a_disk_that_holds_what_is_kept_is_never_full(
    retention_days: int, left: float | None
) -> None:
    """12,500 of 200 bytes are there, and 5,000 come in a day."""
    use = unsealed([rows(100 * MB, 12_500, 2_500_000)], 5000, retention_days)
    assert (use.days_left, use.retention_days) == (left, retention_days)


def test_a_disk_that_is_full_on_the_day_when_no_more_is_kept_is_full() -> None:
    assert unsealed([rows(100 * MB, 10_000, 2 * MB)], 5000, 102).days_left == 100


@pytest.mark.parametrize(
    ("unsealed_rows", "sealed", "seal_hours", "left"),
    [
        # Rows of three days are as many as ever: what comes is sealed in the end.
        (15_000, 85_000, 48, 2000),
        (15_000, 85_000, 72, 2000),
        (17_400, 85_000, 60, 2000),
        # More of them: they may go on to grow, as where nothing is sealed.
        (15_001, 85_000, 48, 100),
        (15_000, 85_000, 0, 100),
        # Too few are sealed to tell what one takes: as the mean.
        (15_000, 9_999, 48, 161.3),
    ],
)
def test_where_what_is_old_is_sealed_no_more_rows_come(
    unsealed_rows: int, sealed: int, seal_hours: int, left: float
) -> None:
    """A row takes 200 bytes, one that is sealed 10; 5,000 come in a day."""
    kept = Kept(unsealed_rows, 150 * unsealed_rows, 50 * unsealed_rows)
    disk = Disk(100 * MB, kept, Kept(sealed, 9 * sealed, sealed))
    use = disk_use([disk], 5000, 0, seal_hours)
    assert use.days_left == pytest.approx(left, rel=0.001)
    assert use.sealed_bytes == (10 if sealed > 9_999 else None)
