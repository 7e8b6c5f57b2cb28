"""Which backups are kept, when the next is due, what is told of the last, who may read them."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyrage.x25519 import Identity

from common import backup_report
from common.backup_report import Report
from mongo.backup import shelf
from mongo.backup.commands import reported
from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.folder import FolderShelf
from mongo.backup.schedule import AGAIN, is_due
from mongo.backup.shelf import KEPT, MANIFEST, NAME
from tests.needs import need

AT = timedelta(hours=3)
FIRST_DAY = datetime(2026, 1, 1, 3, tzinfo=UTC)
NIGHTS = [
    (FIRST_DAY + timedelta(days=day)).strftime(NAME) for day in range(362)
]  # the last: 2026-12-28


def test_which_are_kept() -> None:
    assert sorted(shelf.kept(NIGHTS, (3, 2, 2), NIGHTS[-1])) == [
        "2026-11-30T03-00-00Z",  # the month before
        "2026-12-26T03-00-00Z",
        "2026-12-27T03-00-00Z",  # the week before, a Sunday
        "2026-12-28T03-00-00Z",
    ]
    assert set(shelf.kept(NIGHTS, (0, 0, 0), NIGHTS[-1])) == {NIGHTS[-1]}


def test_what_schedules_keep() -> None:
    keep = sorted(shelf.kept(NIGHTS, KEPT, NIGHTS[-1]), reverse=True)
    assert keep[:7] == NIGHTS[:-8:-1]
    assert [name[:10] for name in keep[7:9]] == ["2026-12-20", "2026-12-13"]  # two more weeks
    assert {name[:7] for name in keep} == {f"2026-{month:02}" for month in range(1, 13)}
    assert len(keep) == 7 + 2 + 11


def test_of_several_on_one_day_the_last_is_kept() -> None:
    names = [f"2026-05-04T{hour:02}-00-00Z" for hour in range(24)]
    assert set(shelf.kept(names, KEPT, names[-1])) == {names[-1]}


def test_days_without_a_backup_delete_nothing() -> None:
    """Who was away for half a year still has seven days."""
    later = "2027-07-01T03-00-00Z"
    before = sorted(shelf.kept(NIGHTS, KEPT, NIGHTS[-1]))
    after = set(shelf.kept([*before, later], KEPT, later))
    assert after >= {later, *NIGHTS[-6:]}


def test_a_clock_that_jumped_deletes_neither_what_was_nor_what_is_made() -> None:
    nights = NIGHTS[:7]
    ahead, behind, right = "2036-01-01T03-00-00Z", "1970-01-01T03-00-00Z", "2026-01-08T03-00-00Z"
    # While it is wrong.
    assert set(shelf.kept([*nights, ahead], KEPT, ahead)) >= {ahead, *nights[1:]}
    assert set(shelf.kept([*nights, behind], (1, 0, 0), behind)) == {behind, *nights}
    # And when it is right again: what is ahead takes nobody's place.
    everything = [behind, *nights, right, ahead]
    assert set(shelf.kept(everything, (7, 0, 0), right)) == {*nights[1:], right, ahead}


def test_days_are_those_of_utc() -> None:
    names = ["2026-03-28T23-59-59Z", "2026-03-29T00-00-01Z", "2026-03-29T02-30-00Z"]
    assert set(shelf.kept(names, (2, 0, 0), names[2])) == {names[0], names[2]}


def test_old_ones_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    names = ["2026-01-01T00-00-00Z", "2026-01-02T00-00-00Z", "mine"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).touch()
    (tmp_path / "2026-01-03T00-00-00Z").mkdir()  # not whole: counts for nothing
    assert shelf.prune(FolderShelf(tmp_path), (1, 0, 0), names[1]) == names[:1]
    assert {path.name for path in tmp_path.iterdir()} == {*names[1:], "2026-01-03T00-00-00Z"}


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def ended(text: str, **fields: int | str | None) -> Report:
    started = int(at(text).timestamp())
    return Report(started, started + 60)._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "last", "due"),
    [
        ("2026-05-04T12:00", None, True),  # the first, at once
        ("2026-05-04T12:00", ended("2026-05-04T03:00"), False),
        ("2026-05-05T02:59", ended("2026-05-04T03:00"), False),
        ("2026-05-05T03:00", ended("2026-05-04T03:00"), True),
        ("2026-05-05T02:59", ended("2026-05-03T03:00"), True),  # the machine was off
        ("2026-05-05T03:00", ended("2026-05-04T23:00"), True),  # one by hand is no nightly one
        ("2026-05-04T03:10", ended("2026-05-04T03:00", finished=None), False),  # failed, or runs
        ("2026-05-04T03:15", ended("2026-05-04T03:00", finished=None), True),
        ("2026-05-04T03:15", ended("2026-05-04T03:00", finished=1), True),
        ("2026-05-04T03:00", ended("2036-01-01T03:00"), True),  # the clock was ahead
        ("2036-01-01T02:00", ended("2026-05-04T03:00"), True),  # or is
    ],
)
def test_when_a_backup_is_due(now: str, last: Report | None, *, due: bool) -> None:
    assert timedelta(minutes=10) < AGAIN <= timedelta(minutes=15)
    assert is_due(at(now), AT, last) is due


def test_what_becomes_of_a_backup_is_told(tmp_path: Path) -> None:
    file = tmp_path / backup_report.FILE_NAME

    def told() -> Report:
        report = backup_report.read(file)
        assert report
        return report

    assert backup_report.read(file) is None
    with reported(tmp_path, scheduled=True):
        assert told()[1:] == (None, None, True)
    first = told()
    assert first.finished
    assert first.finished >= first.started
    with pytest.raises(BackupError), reported(tmp_path, scheduled=False):
        raise BackupError("the store says no")
    # By hand: the schedule goes on, and so does what is known of the last good one.
    assert told()[1:] == (first.finished, "the store says no", True)
    with reported(tmp_path, scheduled=False):
        assert told().error is None
    assert file.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [file]


DAMAGED = ["", "{}", "[]", '{"started": "x"}', "null", "\xff", "[" * 9999]


@pytest.mark.parametrize("damaged", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_report_is_none(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "report").write_text(damaged, encoding="latin-1")
    assert backup_report.read(tmp_path / "report") is None


def test_a_backup_is_late_where_a_schedule_should_have_made_one() -> None:
    day = 86400.0
    assert not Report(0, 60, scheduled=True).is_late(2 * day)
    assert Report(0, 60, scheduled=True).is_late(2 * day + 61)
    assert not Report(0, 60).is_late(99 * day)
    assert Report(0, scheduled=True).is_late(2 * day + 1)
    assert Report(int(9 * day), 60, "it failed", scheduled=True).is_late(9 * day)


def test_the_private_key_alone_reads_what_was_encrypted() -> None:
    private = Identity.generate()
    run = Key.to(f" {private.to_public()} ")
    assert run
    text = b"where everybody was"
    encrypted = run.encrypt(text)
    assert text not in encrypted
    assert run.decrypt(encrypted) == text  # the run that made it
    file = f"# created: 2026\n# public key: {private.to_public()}\n{private}\n"
    assert Key.of(file).decrypt(encrypted) == text
    again = Key.to(str(private.to_public()))
    assert again
    for other in (again, Key.of(str(Identity.generate()))):
        with pytest.raises(BackupError, match="cannot be decrypted"):
            other.decrypt(encrypted)
    with pytest.raises(BackupError, match="cannot be decrypted"):
        run.decrypt(encrypted[:-1])


def test_the_program_age_makes_the_key_and_reads_the_files(tmp_path: Path) -> None:
    need("age-keygen")
    file = tmp_path / "waymark.key"
    subprocess.run(["age-keygen", "-o", file], check=True, capture_output=True)
    words = ["age-keygen", "-y", str(file)]
    public = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    run = Key.to(public)
    assert run
    encrypted = run.encrypt(b"where everybody was")
    assert Key.of(file.read_text()).decrypt(encrypted) == b"where everybody was"
    words = ["age", "--decrypt", "--identity", str(file)]
    done = subprocess.run(words, check=True, capture_output=True, input=encrypted)
    assert done.stdout == b"where everybody was"


def test_what_is_no_key_is_said() -> None:
    assert Key.to(" ") is None
    private = str(Identity.generate())
    with pytest.raises(BackupError, match="no public key of age") as raised:
        Key.to(private)
    assert private not in str(raised.value)
    for text in ("", "# nothing", str(Identity.generate().to_public())):
        with pytest.raises(BackupError, match="private key of age"):
            Key.of(text)
