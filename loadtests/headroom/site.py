"""Where the load of a case goes, and the requests that most cases send."""

import time
from collections.abc import Callable, Mapping
from functools import partial

import gevent

from loadtests import targets
from loadtests.engine import endpoints
from loadtests.engine.client import KEEP_ALIVE, Api, Response, Verify, WrongResponse
from loadtests.engine.pace import open_loop
from loadtests.headroom.answers import Answers
from loadtests.headroom.ledger import Document, Ledger
from loadtests.headroom.stack import LimitedStack

ANSWER_SECONDS = 35.0  # longer than the gateway ever takes
HONEST, HONEST_RATE = "honest insert", 10.0  # a second, beside what is hostile


class Site:
    """A running stack during one case."""

    def __init__(self, stack: LimitedStack, mongodb_uri: str) -> None:
        self.stack = stack
        self.mongodb_uri = mongodb_uri
        self.ledger = Ledger()
        self.answers = Answers()
        self.gateway = Api(stack.url, ANSWER_SECONDS)
        self.services = [_local(port) for port in stack.ingest_ports]
        self.monitoring = _local(stack.monitoring_port)

    def close(self) -> None:
        """Close the connections that are kept."""
        for api in (self.gateway, self.monitoring, *self.services):
            api.close()

    def ask(
        self,
        kind: str,
        path: str,
        body: bytes | None = None,
        *,
        api: Api | None = None,
        verify: Verify | None = None,
        headers: Mapping[str, str] = KEEP_ALIVE,
    ) -> Response:
        """Send, through the gateway unless told otherwise, and count the answer."""
        response = (api or self.gateway).send(path, body, headers)
        wrong = False
        if verify and response.status == 200:
            try:
                verify(response)
            except WrongResponse:
                wrong = True
        self.answers.add(kind, response, wrong=wrong)
        return response

    def insert(self, kind: str = "insert") -> Response:
        """Store a detection of now."""
        return self.store(kind, [self.ledger.now()])

    def batch(self, size: int) -> Response:
        """Store a part of a phone's backlog."""
        return self.store("batch", self.ledger.backlog(size))

    def store(self, kind: str, items: list[Document]) -> Response:
        """Store detections as a phone does: one alone by the legacy endpoint, more as a batch."""
        if len(items) == 1:
            path, body, verify = endpoints.insert(items[0]), None, endpoints.verify_insert
        else:
            path, body = endpoints.BATCH, endpoints.batch(items)
            verify = partial(endpoints.verify_batch, size=len(items))
        response = self.ask(kind, path, body, verify=verify)
        if response.status in targets.STORED:
            self.ledger.acknowledge(items)
        return response

    def honest(self, seconds: float, rate: float = HONEST_RATE) -> None:
        """Store detections at a fixed rate, each of which is to be answered 200 at once."""
        open_loop(int(rate * seconds), seconds, lambda _number, _due: self.insert(HONEST))


def _local(port: int) -> Api:
    return Api(f"http://127.0.0.1:{port}", ANSWER_SECONDS)


def together(*loads: Callable[[], object]) -> None:
    """Run loads at the same time, until all have ended."""
    gevent.joinall([gevent.spawn(load) for load in loads], raise_error=True)


def again_and_again(seconds: float, pause: float, do: Callable[[], object]) -> None:
    """Do something with a pause after it, until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        do()
        gevent.sleep(pause)


def wait_as_told(response: Response) -> None:
    """Wait for what `Retry-After` says, if there is one."""
    if seconds := response.headers.get("retry-after"):
        gevent.sleep(float(seconds))
