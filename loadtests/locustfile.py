"""Ambassadors, the HACS server and the page as users of Locust, who wait for their answers.

    locust -f loadtests/locustfile.py --host http://127.0.0.1:8080

Of 16 users 14 are ambassadors: the source's peak. docs/load-tests.md says when ./scripts/load is
the better tool. WAYMARK_TOKEN is the token of a stack that requires one.
"""

import itertools
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from gevent import GreenletExit, Timeout, sleep
from locust import FastHttpUser, constant_pacing, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.exception import StopTest
from locust.rpc import Message
from locust.runners import MasterRunner

from loadtests import targets
from loadtests.engine import generator
from loadtests.plans import ALL_TIME, BEACON

STAFF = range(14)  # two on each of seven levels
LAST_FIGURES_SECONDS = 60.0
# Address and seconds between two reads, of the page's people and of the old page.
PAGE, OLD_PAGE = ("/monitoring/api/staff", 5), ("/retrieveformonitoring", 30)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _options(parser: LocustArgumentParser) -> None:
    generator.declare(parser, generator.TARGET, include_in_web_ui=False)


@events.init.add_listener  # type: ignore[untyped-decorator]
def _hear_workers_out(environment: Environment, **_: Any) -> None:
    """Have a master wait for its workers' last figures: Locust itself gives them half a second."""
    runner = environment.runner
    if not isinstance(runner, MasterRunner):
        return
    quit_at_once = runner.quit

    def quit_after_them() -> None:
        runner.stop(send_stop_to_client=False)
        for worker in runner.clients.all:
            message = Message("quit", None, worker.id)  # type: ignore[no-untyped-call]
            runner.server.send_to_client(message)
        with Timeout(environment.stop_timeout + LAST_FIGURES_SECONDS, exception=False):
            while runner.user_count:
                sleep(0.1)
        quit_at_once()

    runner.quit = quit_after_them  # type: ignore[method-assign]


class Unanswered(Exception):
    """The test ended before the answer came."""


class Visitor(FastHttpUser):
    """Sends to this machine alone, and counts what is under way at the end, as Locust does not."""

    abstract = True
    default_headers = targets.authorization()

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        options: Any = environment.parsed_options
        try:
            targets.check(self.host or "", i_own_this_host=options.i_own_this_host)
        except targets.ForeignTarget as error:
            environment.process_exit_code = 2
            raise StopTest(str(error)) from error

    @contextmanager
    def asked(self, method: str, path: str, query: str = "", **request: Any) -> Iterator[Any]:
        """Send, and yield the answer, which Locust counts by its path."""
        how: Any = {"name": path, "catch_response": True} | request
        began = time.monotonic()
        try:
            with self.client.request(method, f"{path}?{query}", **how) as answer:
                yield answer
        except GreenletExit:
            self.environment.events.request.fire(
                request_type=method,
                name=path,
                response_time=(time.monotonic() - began) * 1000,
                response_length=0,
                exception=Unanswered("no answer when the test ended"),
                context={},
            )
            raise


class Ambassador(Visitor):
    """A phone: a detection every 4 s, sent again with its event id until it is acknowledged.

    It is a POST because FastHttpUser sends a GET again by itself, up to 12 times.
    """

    wait_time = constant_pacing(4)
    turns = itertools.cycle(STAFF)

    def on_start(self) -> None:
        """Become the next of the staff."""
        self.staff_id = next(self.turns)
        self.waiting: dict[str, object] = {}

    @task
    def detect(self) -> None:
        """Send what is heard now, or what was not acknowledged."""
        named = {"timestamp": int(time.time()), "event_id": uuid.uuid4().hex}
        self.waiting = self.waiting or {"user_address": self.staff_id, **BEACON, **named}
        with self.asked("POST", "/newbeacondetect", data=self.waiting) as answer:
            if answer.status_code in targets.STORED and answer.content == targets.ADDED:
                self.waiting = {}
            else:
                answer.failure(f"{answer.status_code} {answer.text[:80]!r}")


class Hacs(Visitor):
    """The HACS server: everybody's history every 10 s."""

    fixed_count = 1
    wait_time = constant_pacing(10)

    def on_start(self) -> None:
        """Have seen nothing yet."""
        self.seen = dict.fromkeys(STAFF, 0)

    @task
    def read(self) -> None:
        """Read histories: newest first, and none shorter than before."""
        for staff_id, seen in self.seen.items():
            query = urlencode({"staff_id": staff_id, **ALL_TIME})
            with self.asked("GET", "/extractbeacon", query) as answer:
                if answer.status_code != 200:
                    continue  # which Locust counts
                times = [row["timestamp"] for row in answer.json()["location"]]
                if len(times) < seen or times != sorted(times, reverse=True):
                    answer.failure(f"{len(times)} rows after {seen}, or not newest first")
                self.seen[staff_id] = len(times)


class Page(Visitor):
    """An open monitoring page, of the new architecture or the old one."""

    fixed_count = 1
    reads = PAGE

    def wait_time(self) -> int:
        """Return how long it waits after a read, in seconds."""
        return self.reads[1]

    @task
    def show(self) -> None:
        """Fetch where everybody is."""
        with self.asked("GET", self.reads[0]) as answer:
            if answer.status_code == 404 and self.reads == PAGE:
                answer.success()
                self.reads = OLD_PAGE
