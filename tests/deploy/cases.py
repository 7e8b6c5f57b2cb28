"""For each alert: series with which it must fire, what it then says, and some without.

Series are in promtool's words: `0x10` is eleven samples of 0, a step apart; `_` is none.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Series = Mapping[str, str]
WEEK, DAY = 7 * 24 * 60, 24 * 60
# Minutes between two samples, where it is about days.
STEPS = {"WaymarkNobodyHeard": 5, "WaymarkBackupOld": 30}


class Case(NamedTuple):
    """One alert."""

    fires: Series
    at: int  # minutes
    labels: Mapping[str, str]
    summary: str
    silent: Sequence[Series]


ONE = 'job="waymark",part="ingest-1"'
ITS = {"job": "waymark", "part": "ingest-1"}


def of(name: str, values: str, labels: str = ONE) -> Series:
    """Return one series of a metric."""
    return {f"{name}{{{labels}}}": values}


def _ups(*parts: str) -> dict[str, str]:
    return {f'up{{job="waymark",part="{part}"}}': "1x20" for part in parts}


def _answers(good: str, bad: str) -> Series:
    """Return requests of the gateway: how many more are well and failed each minute."""
    name = 'waymark_gateway_requests_total{kind="ingest",status='
    return {f'{name}"2xx"}}': f"0+{good}x20", f'{name}"5xx"}}': f"0+{bad}x20"}


def _took(below: str, kind: str = "ingest") -> Series:
    """Return a histogram: 100 requests a minute, so many of them within 1 s, all within 2.5 s."""
    name = f'waymark_gateway_request_seconds_bucket{{kind="{kind}",le='
    return {
        f'{name}"1"}}': f"0+{below}x30",
        f'{name}"2.5"}}': "0+100x30",
        f'{name}"+Inf"}}': "0+100x30",
    }


def _heard(before: int, now: int) -> Series:
    """Return how many people are heard, a week ago and after it."""
    return of("waymark_people_heard", f"{before}x{WEEK // 5} {now}x12")


def _spool(more: int, room: int) -> Series:
    start = max(0, -20 * more)
    waiting = of("waymark_spool_detections", f"{start}{more:+}x20")
    return {**waiting, **of("waymark_spool_room_detections", f"{room}x20")}


def _backup(scheduled: int, finished: str) -> Series:
    values = {"waymark_backup_scheduled": f"{scheduled}x150"}
    return (
        values | {"waymark_backup_last_success_timestamp_seconds": finished} if finished else values
    )


CASES = {
    "WaymarkPartDown": Case(
        of("up", "1x2 0x10"),
        6,
        ITS,
        "ingest-1 tells nothing",
        [of("up", "1x10"), of("up", "1x5 0 1x5"), of("up", "0x10", 'job="other"')],
    ),
    "WaymarkPartMissing": Case(
        _ups("ingest-1", "monitoring"),
        10,
        {},
        "Only 2 of 3 parts are asked: targets.yml lacks some",
        [_ups("ingest-1", "ingest-2", "monitoring"), _ups("a", "b", "c", "d")],
    ),
    "WaymarkPartRestarts": Case(
        of("waymark_start_time_seconds", "100x5 200x5 300x5 400x5"),
        20,
        ITS,
        "ingest-1 has started 3 times within an hour",
        [
            of("waymark_start_time_seconds", "100x5 200x15"),
            of("waymark_start_time_seconds", "1x20"),
        ],
    ),
    "WaymarkMemoryShort": Case(
        {
            **of("waymark_memory_used_bytes", "95x20"),
            **of("waymark_memory_limit_bytes", "100x20"),
        },
        15,
        ITS,
        "ingest-1 has used 95% of its memory",
        [
            {
                **of("waymark_memory_used_bytes", "80x20"),
                **of("waymark_memory_limit_bytes", "100x20"),
            },
            of("waymark_memory_used_bytes", "95x20"),
        ],
    ),
    "WaymarkCircuitOpen": Case(
        of("waymark_circuit_state", "0 1x10", 'circuit="ingest",state="open"'),
        3,
        {"circuit": "ingest", "state": "open"},
        "The circuit of ingest is open: no ingest service answers",
        [
            of("waymark_circuit_state", "1x10", 'circuit="ingest",state="closed"'),
            of("waymark_circuit_state", "1x10", 'circuit="ingest",state="half-open"'),
            of("waymark_circuit_state", "0x10", 'circuit="ingest",state="open"'),
        ],
    ),
    "WaymarkErrors": Case(
        _answers("90", "10"),
        15,
        {},
        "10% of the requests fail",
        [_answers("1000", "1"), _answers("0", "0"), _answers("5", "0.2")],
    ),
    "WaymarkSlow": Case(
        _took("98"),
        20,
        {"kind": "ingest"},
        "One in a hundred requests of ingest takes 1.75s",
        [_took("100"), _took("98", "long_read"), {}],
    ),
    "WaymarkDatabaseAway": Case(
        of("waymark_database_up", "1 0x10"),
        5,
        {},
        "A part of the database, or all of it, does not answer",
        [
            {
                **of("waymark_database_up", "0x10"),
                **of("waymark_database_up", "1x10", 'job="waymark",part="ingest-2"'),
            },
            of("waymark_database_up", "1 0 1x10"),
        ],
    ),
    "WaymarkReplicationLag": Case(
        of("waymark_replication_lag_seconds", "30x20"),
        10,
        {},
        "A member of the database is 30s behind",
        [
            of("waymark_replication_lag_seconds", "5x20"),
            of("waymark_replication_lag_seconds", "_x20"),
        ],
    ),
    "WaymarkSpoolOld": Case(
        of("waymark_spool_age_seconds", "0+60x20"),
        10,
        {},
        "Detections have waited for the database for 10m 0s",
        [of("waymark_spool_age_seconds", "0x20"), of("waymark_spool_age_seconds", "0+60x4 0x10")],
    ),
    "WaymarkSpoolFills": Case(
        _spool(600, 36_000),
        15,
        ITS,
        "The spool of ingest-1 is full in 1h 0m 0s",
        [_spool(0, 36_000), _spool(-600, 36_000), _spool(600, 36_000_000)],
    ),
    "WaymarkSetAside": Case(
        of("waymark_set_aside_detections", "3x10"),
        6,
        {},
        "3 detections were set aside",
        [of("waymark_set_aside_detections", "0x10")],
    ),
    "WaymarkDetectionsRefused": Case(
        of("waymark_detections_total", "0x5 10x10", f'{ONE},outcome="rejected"'),
        8,
        {"outcome": "rejected"},
        "10 detections were rejected",
        [
            of("waymark_detections_total", "0+10x20", f'{ONE},outcome="queued"'),
            of("waymark_detections_total", "7x20", f'{ONE},outcome="rejected"'),
        ],
    ),
    "WaymarkNobodyHeard": Case(
        _heard(12, 0),
        WEEK + 25,
        {},
        "Nobody is heard; a week ago somebody was",
        [_heard(0, 0), _heard(12, 1)],
    ),
    "WaymarkPositionsBehind": Case(
        {**of("waymark_notes_lag_seconds", "90x20"), **of("waymark_database_up", "1x20")},
        10,
        {},
        "Where people are is told 1m 30s late",
        [
            {**of("waymark_notes_lag_seconds", "20x20"), **of("waymark_database_up", "1x20")},
            {**of("waymark_notes_lag_seconds", "90x20"), **of("waymark_database_up", "0x20")},
            {
                **of("waymark_database_up", "1x20"),
                **of("waymark_notes_lag_seconds", "90x20"),
                **of("waymark_notes_lag_seconds", "5x20", 'job="waymark",part="ingest-2"'),
            },
        ],
    ),
    "WaymarkOperatorNeeded": Case(
        of("waymark_operator_warnings", "0x2 1x10"),
        10,
        {},
        "System shows something that an operator has to see to",
        [of("waymark_operator_warnings", "0x12"), of("waymark_operator_warnings", "0x6 1x2 0x5")],
    ),
    "WaymarkDiskFillsUp": Case(
        of("waymark_disk_left_seconds", "86400x20"),
        15,
        ITS,
        "A disk is nearly full: ingest-1",
        [
            of("waymark_disk_left_seconds", f"{30 * 86400}x20"),
            of("waymark_disk_free_bytes", "5e9x20"),
            of("waymark_spool_disk_free_bytes", "5e9x20"),
        ],
    ),
    "WaymarkCertificateExpires": Case(
        of("waymark_certificate_expiry_timestamp_seconds", f"{90 * 60 + 864_000}x100"),
        90,
        ITS,
        "The certificate expires in 10d 0h 0m 0s",
        [
            of("waymark_certificate_expiry_timestamp_seconds", f"{30 * 86400}x100"),
            of("waymark_certificate_expiry_timestamp_seconds", "_x100"),
        ],
    ),
    "WaymarkBackupFailed": Case(
        {"waymark_backup_failed": "1x20"},
        6,
        {},
        "The last backup failed",
        [{"waymark_backup_failed": "0x20"}, {"waymark_backup_failed": "_x20"}],
    ),
    "WaymarkBackupOld": Case(
        _backup(1, "0x150"),
        2 * DAY + 90,
        {},
        "No whole backup was made for two days",
        [_backup(0, "0x150"), _backup(1, "0x50 86400x100"), {}],
    ),
}
# Other ways to the same alert.
MORE = [
    ("WaymarkPartMissing", {}, 10, {}, "Only 0 of 3 parts are asked: targets.yml lacks some"),
    (
        "WaymarkDiskFillsUp",
        of("waymark_disk_free_bytes", "5e8x20"),
        15,
        ITS,
        "A disk is nearly full: ingest-1",
    ),
    (
        "WaymarkDiskFillsUp",
        of("waymark_spool_disk_free_bytes", "1e8x20"),
        15,
        ITS,
        "A disk is nearly full: ingest-1",
    ),
    (
        "WaymarkBackupOld",
        _backup(1, ""),
        2 * DAY,
        {},
        "No whole backup was made for two days",
    ),
]
