"""The table: what was tried, and what came back."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.hostile import bodies, injection, smuggling
from tests.hostile.case import HIDDEN, TARGETS, Case, declared, is_failure, leaked
from tests.hostile.site import Site
from tests.hostile.wire import exchange

AT_ONCE = 8  # connections
HONEST = {"honest"}  # whom a case may store openly


class Line(NamedTuple):
    """One case on one target, what came back, and what is wrong with that."""

    name: str
    target: str
    said: str
    wrong: str


def cases() -> list[Case]:
    """Return every case of the table."""
    return [*smuggling.cases(), *injection.cases(), *bodies.cases()]


def lines(site: Site, tried: Sequence[Case]) -> list[Line]:
    """Try all cases on all their targets, then look for what must not have been stored."""
    wanted = [
        (number, case, target)
        for number, case in enumerate(tried)
        for target in TARGETS
        if declared(case.name).of(target)
    ]
    before = site.staff()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda one: _tried(site, *one), wanted))
    hidden = {_hidden(number, to).decode(): (case.name, to) for number, case, to in wanted}
    expected = HONEST | {
        one for one, (name, target) in hidden.items() if target[0] in declared(name).stores
    }
    for one in sorted((site.staff() - before) ^ (expected - before)):
        name, target = hidden.get(one, (one, TARGETS[0]))
        became = "is not stored" if one in expected else "was stored"
        found.append(Line(name, target, "", f"{one} {became}"))
    return found


def _hidden(number: int, target: str) -> bytes:
    """Return the staff id of a case's hidden request: of one length, as lengths are declared."""
    return b"hidden-%04d%c" % (number, ord(target[0]))


def _tried(site: Site, number: int, case: Case, target: str) -> Line:
    allowed = declared(case.name).of(target)
    sent = case.sent.replace(HIDDEN, _hidden(number, target))
    open_after = tuple(one.removesuffix(" ...") for one in allowed if one.endswith("..."))
    said, answers = exchange(site.ports[target], sent, open_after=open_after)
    wrong = "" if said in allowed else f"declared: {' | '.join(allowed)}"
    if is_failure(said):
        wrong = "a failure of ours"
    elif leak := leaked(answers):
        wrong = f"the answer holds {leak!r}"
    return Line(case.name, target, said, wrong)


def printed(found: Iterable[Line]) -> Iterator[str]:
    """Yield the table's lines, one for each case."""
    by_name: dict[str, dict[str, Line]] = {}
    for line in found:
        by_name.setdefault(line.name, {})[line.target] = line
    yield f"{'tried':<60}" + "".join(f"{target:<16}" for target in TARGETS)
    for name, said in by_name.items():
        cells = (f"{said[one].said if one in said else '':<16}" for one in TARGETS)
        wrong = "; ".join(f"{one.target}: {one.wrong}" for one in said.values() if one.wrong)
        yield f"{name:<60}{''.join(cells)}{wrong}".rstrip()
