"""A mobile sync server's users."""

import json
import time
from argparse import Namespace
from collections.abc import Iterator

import gevent

from loadtests.engine import endpoints
from loadtests.engine.client import Api, Response, WrongResponse
from loadtests.figures import VERIFICATION
from loadtests.workloads.resending import Clients, random_mac

SPEED = 1.0
USERS, PARTS, OBJECTS_A_PART = 100, 4, 5
MORE_READS = 4  # 904 requests in all, as in the source


def run(api: Api, _given: Namespace) -> Iterator[str]:
    """100 users with a device each: begin, store 20 objects in four parts, read each part back."""
    clients = Clients(api)

    def user(number: int) -> None:
        name = f"user-{number}-{clients.run}"
        for part in range(PARTS + 1):

            def verify(response: Response, expected: int = OBJECTS_A_PART * part) -> None:
                if len(endpoints.newest_first(response)) != expected:
                    raise WrongResponse(f"{name} has not {expected} objects")

            clients.read(endpoints.extract(name), verify)
            if part < PARTS:
                clients.batch(name, [random_mac() for _ in range(OBJECTS_A_PART)])

    began = time.monotonic()
    gevent.joinall([gevent.spawn(user, number) for number in range(USERS)], raise_error=True)
    for _ in range(MORE_READS):
        clients.read("/api/v1/staff", lambda response: json.loads(response.body)["data"])
    took = time.monotonic() - began
    wrong = [row.detail for row in api.rows if row.error == VERIFICATION]
    sent = len(api.rows) - clients.retries
    rate = len(api.rows) / took
    yield f"{sent} requests and {clients.retries} retries, {rate:.0f}/s, {len(wrong)} wrong"
    yield from clients.verdict([f"wrong answer: {wrong[0]}"] if wrong else [])
