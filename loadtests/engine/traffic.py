"""A step's requests, each verified against what the server must hold."""

from collections import defaultdict
from functools import partial

import gevent

from loadtests.engine import companions, endpoints
from loadtests.engine.client import Api
from loadtests.engine.histories import History
from loadtests.engine.pace import open_loop
from loadtests.engine.preload import Preloader
from loadtests.figures import Summary, summary
from loadtests.plans import BEACON, Step, requests


class Traffic:
    """Sends steps to one server, and knows what it must hold afterwards."""

    def __init__(self, api: Api, preloader: Preloader) -> None:
        self._api = api
        self._preloader = preloader
        self.histories: dict[int, History] = defaultdict(History)

    def send(self, plan: str, step: Step, ramp_seconds: float) -> Summary:
        """Send at the step's times; return the figures of its requests without the companions'."""
        began = self._api.begin(plan, step.name)
        first = len(self._api.rows)
        pollers = companions.start(self._api, self.histories, step.hacs, step.pages)
        open_loop(requests(step, ramp_seconds), ramp_seconds, partial(self._one, step), began)
        gevent.killall(pollers)
        return summary([row for row in self._api.rows[first:] if row.name == step.kind])

    def _one(self, step: Step, number: int, due: float) -> None:
        staff = step.staff[number % len(step.staff)]
        if step.kind == "extract":
            verify = self.histories[staff].verify
            self._api.measure("extract", endpoints.extract(staff), verify, due=due)
        else:
            self._store(step, staff, due)

    def _store(self, step: Step, staff: int, due: float) -> None:
        if step.kind == "batch":
            path, body = endpoints.BATCH, self._preloader.batch(staff, step.batch)
            verify = partial(endpoints.verify_batch, size=step.batch)
        else:
            path, body = endpoints.path_of("/newbeacondetect", user_address=staff, **BEACON), None
            verify = partial(endpoints.verify_insert)
        history = self.histories[staff]
        history.sent += step.batch
        good = endpoints.STORED
        response = self._api.measure(step.kind, path, verify, body, due=due, good=good)
        history.count(response, step.batch)
