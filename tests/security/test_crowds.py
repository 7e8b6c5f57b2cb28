"""Crowds of everything that is wrong, at services inside their 64 MiB: nothing of it adds up."""

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest

from ingest.api.openapi import document
from loadtests.headroom.cases import CASES
from loadtests.headroom.command import run
from loadtests.headroom.results import part_problems
from loadtests.headroom.stack import LIMITS, MIB, LimitedStack
from loadtests.headroom.watch import Watch
from scripts.processes.control_groups import Limits
from tests.limited_stack import SLOW, limited_stack
from tests.security.case import is_failure
from tests.services.ingest.api.garbage import Garbage, largest
from tests.services.ingest.api.test_fuzz import answered

pytestmark = pytest.mark.long

CROWD = 24  # twelve batches of wrong types were too many, and a service has eight threads for them
INGEST = ("ingest-1", "ingest-2")
SECONDS = 5.0


@pytest.fixture(scope="module")
def stack() -> Iterator[LimitedStack]:
    """Give the services all CPU: it is the memory that is short."""
    with limited_stack(LIMITS | dict.fromkeys(INGEST, Limits(None, 64 * MIB))) as stack:
        yield stack


def test_no_kind_of_bad_input_adds_up(stack: LimitedStack) -> None:
    garbage = Garbage(json.loads(json.dumps(document.document())), seed=7)
    ports = [stack.ingest_ports[number % len(INGEST)] for number in range(CROWD)]
    counts: Counter[int] = Counter()
    with (
        ExitStack() as held,
        ThreadPoolExecutor(CROWD) as crowd,
        Watch(stack.groups(), stack.limits) as seen,
    ):
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for port in ports]
        for connection in connections:
            held.callback(connection.close)
        for case in (*largest(), *garbage.case_of_each_operation()):
            send = partial(answered, case=case)
            counts.update(status for status, _, _ in crowd.map(send, connections))
    assert list(part_problems(seen.parts())) == []
    assert not [status for status in counts if is_failure(str(status))], counts
    assert counts[400] > 10 * CROWD
    assert counts[413] > 3 * CROWD


def test_a_crowd_of_bad_batches_leaves_room(stack: LimitedStack) -> None:
    (case,) = (case for case in CASES if case.name == "24 batches of wrong types at once")
    problems = run(stack, case, SECONDS, {}).problems
    assert [problem for problem in problems if not SLOW.search(problem)] == []
