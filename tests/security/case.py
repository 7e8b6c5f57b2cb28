"""One thing that an attacker tries, and what it may get."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

TARGETS = ("gateway", "ingest", "monitoring")
# The staff id of a request that hides in another one.
HIDDEN = b"hidden-0000000"
# Stands for the headers of whoever sends a request: of one length, as lengths are declared.
CREDENTIALS = b"X-Nobody: " + b"-" * 390
DECLARED = Path(__file__).with_name("declared.tsv")

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_HEAD = re.compile(rb"HTTP/1\.[01] \d{3}.*?\r\n\r\n", re.DOTALL)
# What no answer may hold, and what may not stand in its head: a trace, a file of the machine; a
# header or an address of the attacker's.
LEAKS = (b"traceback", b"site-packages", b"root:x:0")
HEAD_LEAKS = (b"\nx-injected", b"//evil.example")


class Case(NamedTuple):
    """What is sent on one connection.

    It is followed by a request for `/probe`, which is a 404 where the connection is in order.
    """

    name: str
    sent: bytes


class Answers(NamedTuple):
    """What each target may answer: a line of the declared table.

    Statuses stand in their order, `-` for none; `|` separates alternatives; `...` at the end:
    the connection stays open. A target without a word is not asked. `stores` has the first letter
    of each target that takes the hidden request for one of its own: what it read is not hidden.
    """

    name: str  # `*` stands for any text
    gateway: str
    ingest: str
    monitoring: str
    stores: str

    def of(self, target: str) -> tuple[str, ...]:
        """Return the answers that a target may give."""
        answers: str = getattr(self, target)
        return tuple(word.strip() for word in answers.split("|")) if answers else ()


@cache
def _declared() -> list[tuple[re.Pattern[str], Answers]]:
    lines = [line.split("\t") for line in DECLARED.read_text().splitlines()[1:]]
    answers = [Answers(*line) for line in lines]
    return [(re.compile(re.escape(case.name).replace(r"\*", ".*")), case) for case in answers]


def declared(name: str) -> Answers:
    """Return the first line of the declared table that names a case."""
    return next(answers for pattern, answers in _declared() if pattern.fullmatch(name))


def statuses(answers: bytes) -> str:
    """Return the statuses of all answers on a connection."""
    return " ".join(status.decode() for status in _STATUS.findall(answers)) or "-"


def leaked(answers: bytes) -> bytes:
    """Return what answers hold that none may."""
    heads = b"".join(_HEAD.findall(answers)).lower()
    text = answers.lower()
    leaks = [leak for leak in LEAKS if leak in text] + [
        leak for leak in HEAD_LEAKS if leak in heads
    ]
    return b", ".join(leaks)


def is_failure(said: str) -> bool:
    """Tell whether there is a 5xx among statuses that nobody may declare."""
    return any(status[0] == "5" and status != "503" for status in said.split())
