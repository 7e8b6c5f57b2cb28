"""Many more requests: those of the table changed at random, and those made from the document."""

import gzip
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ingest.rules.roles import Role
from tests.security import routes, smuggling
from tests.security.case import CREDENTIALS, HIDDEN, TARGETS, is_failure, leaked
from tests.security.site import Guarded
from tests.security.visitors import Visitor
from tests.security.wire import exchange
from tests.services.ingest.api.garbage import Case as Made
from tests.services.ingest.api.garbage import Garbage

AT_ONCE = 16  # connections
SILENT_SECONDS = 0.5  # many are never complete
# A change may make the hidden request an honest one: no case of the table has this id.
HIDDEN_ID = b"hidden-fuzzed0"
_PIECES = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b"\x0b", b":", b";", b",", b"0", b"+", b"-", b"x"),
    *(b"\xff", b"\x80", b"chunked", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n"),
    *(b"HTTP/1.1", b"HTTP/1.0", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n", b"Connection: close\r\n"),
]


class Done(NamedTuple):
    """How often which statuses came, and what must not have."""

    said: Counter[tuple[str, str]]
    wrong: list[str]

    def printed(self) -> Iterator[str]:
        """Yield a line for each kind of answer, the most frequent first, and for what is wrong."""
        for (target, said), count in self.said.most_common():
            yield f"{count:>8} {target:<12}{said}"
        yield f"{self.said.total()} requests, {len(self.wrong)} with an answer that none may get"
        yield from self.wrong[:20]


def fuzz(site: Guarded, count: int, seed: int) -> Done:
    """Send so many requests, each as somebody: the same for the same seed."""
    done = Done(Counter(), [])
    with ThreadPoolExecutor(AT_ONCE) as threads:
        share = count // AT_ONCE
        numbers = range(seed * AT_ONCE, (seed + 1) * AT_ONCE)
        known = site.visitors, site.document  # once, before there are threads
        parts = threads.map(lambda number: _part(site, *known, share, number), numbers)
        for part in parts:
            done.said.update(part.said)
            done.wrong.extend(part.wrong)
    return done


def _part(
    site: Guarded, everybody: list[Visitor], document: dict[str, Any], count: int, seed: int
) -> Done:
    chance, garbage = random.Random(seed), Garbage(document, seed)
    heads = [case.sent for case in smuggling.cases()]
    public = {
        (route.method, route.path)
        for route in routes.of_document(document)
        if route.role is Role.NOBODY
    }
    good = [known.secret for known in everybody if known.role is not Role.NOBODY]
    # A change could make a good secret of one that only has something beside it.
    visitors = [
        known
        for known in everybody
        if known.lines
        if known.role is not Role.NOBODY or not any(secret in str(known.headers) for secret in good)
    ]
    done = Done(Counter(), [])
    for _ in range(count):
        target, visitor = chance.choice(TARGETS), chance.choice(visitors)
        made = garbage.case() if target != "monitoring" and chance.random() < 0.5 else None
        sent = _raw(chance, made) if made else chance.choice(heads)
        sent = sent.replace(HIDDEN, HIDDEN_ID).replace(CREDENTIALS, visitor.lines or b"")
        sent = sent if made else _changed(chance, sent)
        said, answers = exchange(site.ports[target], sent, silent_seconds=SILENT_SECONDS)
        done.said[target, said] += 1
        strange = visitor.role is Role.NOBODY and not (made and (made.method, made.path) in public)
        wrong = (
            is_failure(said)
            or leaked(answers)
            or any(secret.encode() in answers for secret in good)
        )
        if wrong or (strange and any(status[0] == "2" for status in said.split())):
            done.wrong.append(f"{target}, {visitor.name}: {said} for {sent[:600]!r}")
    return done


def _raw(chance: random.Random, case: Made) -> bytes:
    """Return a request made from the document as its bytes; some bodies would grow."""
    headers, body = {"Host": "localhost"} | case.headers, case.body
    if body is not None:
        if chance.random() < 0.05:
            body, headers["Content-Encoding"] = gzip.compress(body + b" " * 2**22, 1), "gzip"
        headers["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    line = f"{case.method} {case.target} HTTP/1.1\r\n"
    return (line + head).encode("latin-1") + CREDENTIALS + b"\r\n\r\n" + (body or b"")


def _changed(chance: random.Random, sent: bytes) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(sent) + 1), chance.choice([0, 0, 1, 2, 8])
        piece = chance.choice(_PIECES) if chance.random() < 0.8 else chance.randbytes(2)
        sent = sent[:at] + piece + sent[at + length :]
    return sent
