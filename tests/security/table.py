"""The table: what was tried, and what came back."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ingest.rules.roles import Role
from tests.security import bodies, injection, smuggling, sweep
from tests.security.case import (
    CREDENTIALS,
    HIDDEN,
    TARGETS,
    Case,
    declared,
    is_failure,
    leaked,
)
from tests.security.routes import Route
from tests.security.site import Guarded
from tests.security.visitors import Visitor
from tests.security.wire import exchange

AT_ONCE = 8  # connections
HONEST = {"honest"}  # whom a case may store openly
# What a service may have answered, where it now says that it does not know who asks.
_ANSWERED = {"200", "202", "302", "400", "404", "405", "413", "415"}
_PUBLIC = ("healthz", "nginx_status")  # what anybody on this machine may read
_STORE = Route("GET", "/newbeacondetect", Role.INGEST)


class Line(NamedTuple):
    """One case on one target, what came back, and what is wrong with that."""

    name: str
    target: str
    said: str
    wrong: str


def cases() -> list[Case]:
    """Return every case of the table."""
    return [*smuggling.cases(), *injection.cases(), *bodies.cases()]


def lines(site: Guarded, tried: Sequence[Case], visitor: Visitor) -> list[Line]:
    """Try all cases as somebody on all their targets; look for what must not have been stored."""
    turn = site.visitors.index(visitor)
    wanted = [
        (turn, number, case, target)
        for number, case in enumerate(tried)
        for target in TARGETS
        if declared(case.name).of(target)
    ]
    before = site.staff()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        rows = list(threads.map(lambda route: _tried(site, visitor, *route), wanted))
    hidden = {_hidden(turn, number, to).decode(): (case, to) for turn, number, case, to in wanted}
    expected = {
        change
        for change, (case, target) in hidden.items()
        if target[0] in declared(case.name).stores and _may_store(target, _STORE, visitor)
    }
    if _may_store("ingest", _STORE._replace(method="POST"), visitor):
        expected |= HONEST
    for change in sorted((site.staff() - before) ^ (expected - before)):
        name = hidden[change][0].name if change in hidden else change
        became = "is not stored" if change in expected else "was stored"
        rows.append(Line(name, TARGETS[0], "", f"{change} {became}"))
    return rows


def _may_store(target: str, route: Route, visitor: Visitor) -> bool:
    return sweep.expected(target, route, visitor) == "in"


def _hidden(turn: int, number: int, target: str) -> bytes:
    """Return the staff id of a case's hidden request: of one length, as lengths are declared."""
    return b"hidden-%02d%04d%c" % (turn, number, ord(target[0]))


def _tried(
    site: Guarded, visitor: Visitor, turn: int, number: int, case: Case, target: str
) -> Line:
    allowed = declared(case.name).of(target)
    sent = case.sent.replace(HIDDEN, _hidden(turn, number, target))
    sent = sent.replace(CREDENTIALS, visitor.lines or b"")
    stay_open = [prefix.removesuffix(" ...") for prefix in allowed if prefix.endswith("...")]
    open_after = (*stay_open, "401", "403") if stay_open else ()
    said, answers = exchange(site.ports[target], sent, open_after=open_after)
    wrong = "" if is_declared(said, case, allowed, visitor) else f"declared: {' | '.join(allowed)}"
    if is_failure(said):
        wrong = "a failure of ours"
    elif leak := leaked(answers):
        wrong = f"the answer holds {leak!r}"
    return Line(case.name, target, said, wrong)


def is_declared(said: str, case: Case, allowed: Iterable[str], visitor: Visitor) -> bool:
    """Tell whether an answer is one of those that are declared for an administrator.

    Others may get a refusal in the place of what a service answers.
    """
    if visitor.role is Role.ADMIN and visitor.proven and "Authorization" in visitor.headers:
        return said in allowed
    refusals = ("401", "403", "503") if sweep.KEPT in case.name else ("401", "403")
    public = any(name in case.name for name in _PUBLIC)
    if visitor.role is Role.NOBODY and not public and any(s[0] == "2" for s in said.split()):
        return False
    return any(
        len(said.split()) == len(prefix.split())
        and all(
            came == may_come or (came in refusals and may_come in _ANSWERED)
            for came, may_come in zip(said.split(), prefix.split(), strict=True)
        )
        for prefix in allowed
    )


def printed(rows: Iterable[Line]) -> Iterator[str]:
    """Yield the table's lines, one for each case."""
    by_name: dict[str, dict[str, Line]] = {}
    for line in rows:
        by_name.setdefault(line.name, {})[line.target] = line
    yield f"{'tried':<60}" + "".join(f"{target:<16}" for target in TARGETS)
    for name, said in by_name.items():
        cells = (f"{said[target].said if target in said else '':<16}" for target in TARGETS)
        wrong = "; ".join(
            f"{answer.target}: {answer.wrong}" for answer in said.values() if answer.wrong
        )
        yield f"{name:<60}{''.join(cells)}{wrong}".rstrip()
