"""One verdict on the whole system: what does not work, what still does, and what to do.

The banner of each screen, the screen "System" and `/monitoring/api/system` say the same words.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from monitoring.gateway import BUSY, OPEN, UNKNOWN

HALF_OPEN = "half-open"
HEALTHY = "Everything is healthy"
# What is stored is noted when it is settled, within some 20 s.
BEHIND_SECONDS = 60
# A question to a database takes a millisecond or two, tens of them on a machine with much to do.
SLOW_MS = 250
LATE_SECONDS = 5  # one late answer says little


class Verdict(NamedTuple):
    """A sentence in parts, since what it tells may change while it holds, and is not said again."""

    what: str  # what does not work
    rest: str = ""  # what still works, and what to do
    kept: str = ""  # what waits in the spools
    since: float | None = None  # unix seconds; None: since it is found


def judge(
    circuits: Mapping[str, str],
    services: Sequence[dict[str, Any]],
    after: float,
    warnings: Sequence[dict[str, str]] = (),
) -> Verdict:
    """Return the verdict: the worst thing first.

    `circuits`: the state of each; `services`: of each what the health monitor reports. What one
    has said of the database before `after` (unix seconds) says nothing of it now. `warnings`:
    what an operator has to see to besides what the services report.
    """
    ingest, reads = circuits["ingest"], circuits["reads"]
    answering = [service for service in services if service["answers"]]
    silent = [service for service in services if not service["answers"]]
    away = [service for service in answering if _denies(service, "reachable")]
    heard = [service for service in answering if service["seen_at"] >= after]
    kept = _kept(services)
    if ingest == reads == UNKNOWN:
        return Verdict(
            "The gateway does not answer",
            "Phones have to send again, and nothing can be read. The gateway has to be restarted.",
            kept,
        )
    if ingest == reads == OPEN:
        return Verdict(
            "No ingest service answers",
            "Phones have to send again, and nothing can be read. The ingest services have to be "
            "restarted.",
            kept,
        )
    if ingest == OPEN:
        return Verdict(
            "Detections are not taken in",
            "Phones have to send again; what was stored before can be read. The ingest services "
            "have to be looked at.",
            kept,
        )
    if ingest == UNKNOWN:
        return Verdict("Whether detections are taken in cannot be told", "The rest can be read.")
    if heard and all(service in away for service in heard):
        return Verdict(
            "The database does not answer",
            "Detections are taken in and stored when it answers again; until then positions stay "
            "as they were. The database has to be looked at.",
            kept,
        )
    if reads == OPEN or (services and not answering):
        return Verdict(
            "Nothing can be read",
            "Detections are taken in. The ingest services have to be looked at.",
            kept,
        )
    if reads == UNKNOWN:
        return Verdict(
            "Whether anything can be read cannot be told", "Detections are taken in.", kept
        )
    if any(_denies(service, "complete") for service in heard if service not in away):
        return Verdict(
            "A part of the database does not answer",
            "Detections are taken in. Those of the people on it are stored when it answers again; "
            "until then these people are missing, or shown as they were. The database has to be "
            "looked at.",
            kept,
        )
    slow = _slow([service for service in heard if service not in away], kept)
    if silent:
        shown = "stored late: the database is slow" if slow else "stored and shown all the same"
        return Verdict(
            _names(silent, "does not answer", "do not answer"),
            f"Detections are taken in, {shown}. Restart what does not answer.",
            kept,
            min(service["since"] for service in silent),
        )
    if slow:
        return slow
    if away:
        return Verdict(
            _names(away, "does not reach the database", "do not reach the database"),
            "Detections are taken in and shown all the same.",
            kept,
        )
    return _of_less(ingest, reads, services, kept, warnings)


def _of_less(
    ingest: str,
    reads: str,
    services: Sequence[dict[str, Any]],
    kept: str,
    warnings: Sequence[dict[str, str]],
) -> Verdict:
    """Return the verdict while all services answer, and reach the database."""
    if ingest == BUSY:
        return Verdict("Busy", "Some detections have to be sent again.", kept)
    if reads == BUSY:
        return Verdict("Busy", "Some reads have to be repeated.", kept)
    if HALF_OPEN in (ingest, reads):
        return Verdict("An ingest service does not answer", "The others do its work.", kept)
    behind = min((service["unnoted_seconds"] for service in services), default=0)
    if behind > BEHIND_SECONDS:
        return Verdict(
            "Positions are behind",
            f"Those of the last {behind // 60} min may be missing; what is stored is safe. "
            "The database has too much to do.",
            kept,
        )
    for warning in (*warnings, *(warning for each in services for warning in each["warnings"])):
        return Verdict(warning["what"], warning["todo"], kept)
    if aside := sum(service["set_aside"] for service in services):
        return Verdict(f"{aside:,} set aside in the spool", "Somebody has to look.", kept)
    if kept:
        return Verdict("Detections wait to be stored", "", kept)
    return Verdict(HEALTHY)


def _slow(heard: Sequence[dict[str, Any]], kept: str) -> Verdict | None:
    """Return the verdict on a database that answers, but late, by what was measured."""
    if not heard:
        return None
    took = [service["mongodb"].get("latency_ms") for service in heard if service["mongodb"]]
    late = max(service["late_seconds"] for service in heard)
    if took and all(ms is None or ms > SLOW_MS for ms in took):
        known = [ms for ms in took if ms is not None]
        measured = f"Its answer took {min(known):.0f} ms" if known else "It does not answer in time"
    elif late > LATE_SECONDS:
        measured = f"For {late} s it has not told in time where everybody is"
    else:
        return None
    return Verdict(
        "The database is slow",
        f"{measured}. Detections are taken in; what is shown may be old, or lack people. The "
        "database has too much to do, or too little of the machine.",
        kept,
    )


def _denies(service: dict[str, Any], what: str) -> bool:
    """Tell whether a service says that this is not so of its database."""
    return (service["mongodb"] or {}).get(what) is False


def _kept(services: Sequence[dict[str, Any]]) -> str:
    count = sum(service["queued"] or 0 for service in services)
    were = "detection is" if count == 1 else "detections are"
    return f"{count:,} {were} safe on disk." if count else ""


def _names(services: Sequence[dict[str, Any]], one_does: str, they_do: str) -> str:
    names = " and ".join(service["name"] for service in services)
    return f"{names} {one_does if len(services) == 1 else they_do}"
