"""Every route as everybody: who gets what."""

import http.client
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ingest.rules.roles import Role
from tests.security.case import LEAKS, is_failure
from tests.security.routes import CIRCUITS, ENDS, NOT_AT_THE_GATEWAY, SERVICE, Route
from tests.security.visitors import ELSEWHERE, Visitor

AT_ONCE = 8
# A 503 that asks for patience: the page asks for two strangers at a time. No other is an answer.
PATIENCE = (b"and only they know who may read", b"busy: ")
TRIES, PAUSE_SECONDS = 40, 0.1
SAFE = ("GET", "HEAD", "OPTIONS")
# What the gateway passes on of a detection: a phone has no cookie.
WITHOUT_COOKIES = "/newbeacondetect"
# Nor has an iPhone, which keeps a message that the gateway refuses: with a 503.
KEPT = "/owntracks"
# Answered by the gateway, whatever the method: it asks for it with a GET.
SHARED = ("gateway", "/retrieveformonitoring")


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Asked(NamedTuple):
    """One request, its answer and what is wrong with that."""

    target: str
    route: Route
    visitor: Visitor
    answer: Answer
    wrong: str


def ask(address: tuple[str, int], route: Route, visitor: Visitor) -> Answer:
    """Send one request on a connection of its own."""
    query = "&".join(part for part in (route.query, visitor.query) if part)
    headers = dict(visitor.headers) | ({"Content-Type": route.kind} if route.kind else {})
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        target = f"{route.path}?{query}" if query else route.path
        connection.request(route.method, target, route.body or None, headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def expected(target: str, route: Route, visitor: Visitor) -> str:
    """Return what has to come: a status, "in" for what whoever is admitted gets, "none",
    and "perhaps" of a level.
    """
    if not route.declared and route.method != "HEAD":
        return "none"
    if route.role is Role.NOBODY:
        return "in"
    by_cookie = "Authorization" not in visitor.headers and "Cookie" in visitor.headers
    if by_cookie and target == "gateway" and route.path in (WITHOUT_COOKIES, *SERVICE):
        return "401"
    if by_cookie and route.path == KEPT:
        return "401"
    role = visitor.role
    if role is Role.NOBODY:
        return "401"
    if not role.allows(route.role):
        return "403"
    if visitor.level and route.role is Role.READ:
        return "perhaps"
    changes = route.method not in SAFE and (target, route.path) != SHARED
    return "403" if changes and not visitor.proven else "in"


def wrong(target: str, route: Route, visitor: Visitor, answer: Answer, secrets: set[str]) -> str:
    """Return what is wrong with an answer, "" for nothing."""
    status, said = answer.status, expected(target, route, visitor)
    text = answer.body.decode("latin-1") + str(answer.headers)
    if (target, route.path, status) == ("gateway", KEPT, 503) and said in ("401", "403"):
        return "" if b"needs a valid token" in answer.body else "does not say what it needs"
    if status >= 500:
        return "a failure of ours" if is_failure(str(status)) else "still unavailable"
    if any(secret in text for secret in secrets) or any(
        leak in answer.body.lower() for leak in LEAKS
    ):
        return "the answer holds what none may"
    if visitor.level and ELSEWHERE in text:
        return "tells of another level"
    if said == "perhaps":
        return "turned away" if status == 401 else ""
    if said == "none":
        fine = status in (400, 401, 403, 404, 405) or (route.method == "OPTIONS" and status == 204)
        fine = fine or (route.method == "OPTIONS" and status == 200 and not answer.body)
        return "" if fine else "no address has this method"
    if said == "in":
        return "turned away" if status in (401, 403) else ""
    if route.method == "HEAD" and status == 405:
        return ""
    if status != int(said):
        return f"declared: {said}"
    if status == 401 and answer.headers["WWW-Authenticate"] != "Bearer":
        return "does not say what it needs"
    return ""


def sweep(
    ports: dict[str, int], routes: Sequence[Route], visitors: Sequence[Visitor]
) -> list[Asked]:
    """Ask every target for its routes as everybody."""
    secrets = {visitor.secret for visitor in visitors if visitor.role is not Role.NOBODY}
    wanted = [
        (target, route, visitor)
        for route in routes
        for target in ports
        for visitor in visitors
        if _is_of(target, route) and not _ends(route, visitor) and not _is_let_in(route, visitor)
    ]

    def tried(one: tuple[str, Route, Visitor]) -> Asked:
        target, route, visitor = one
        for _ in range(TRIES):
            answer = ask(("127.0.0.1", ports[target]), route, visitor)
            if not _again(answer):
                break
            time.sleep(PAUSE_SECONDS)
        what = wrong(target, route, visitor, answer, secrets)
        return Asked(target, route, visitor, answer, what)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(tried, wanted))


def _again(answer: Answer) -> bool:
    if answer.status == 503:  # a HEAD has no words
        return not answer.body or any(words in answer.body for words in PATIENCE)
    return answer.status == 429  # the circuits tell 5 times a second


def _is_of(target: str, route: Route) -> bool:
    if target == "gateway":
        return route.path not in NOT_AT_THE_GATEWAY
    if route.path in (*CIRCUITS, *SERVICE, "/healthz"):
        return route.path == "/healthz"
    return route.page == (target == "monitoring")


def _ends(route: Route, visitor: Visitor) -> bool:
    return (route.method, route.path) == ENDS and visitor.role is not Role.NOBODY


def _is_let_in(route: Route, visitor: Visitor) -> bool:
    """Tell whether a stranger's query is a good token: at one address alone."""
    return route.path == KEPT and visitor.query.startswith("token=")


def counted(findings: Iterable[Asked]) -> Counter[tuple[str, str, int]]:
    """Return how often each visitor got which status at which target."""
    return Counter(
        (finding.visitor.name, finding.target, finding.answer.status) for finding in findings
    )
