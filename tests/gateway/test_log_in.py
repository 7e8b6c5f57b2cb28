"""People log in through the real gateway, at two services: what guessers do disturbs nobody."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from ingest.rules.roles import Role
from tests.gateway.conftest import Gateway
from tests.ingest.people import PASSWORD, office
from tests.service import Service, running

LOG_IN = "/api/v1/session"
GUESSERS, GUESSES = 8, 240


@pytest.fixture
def gateway(mongod: str, tmp_path: Path) -> Iterator[Gateway]:
    """Run a gateway before two services that require a log-in; anna has an account."""
    (tmp_path / "run").mkdir()
    with (
        MongoClient[dict[str, Any]](mongod) as client,
        office(mongod, client["ICT3102"], tmp_path) as people,
    ):
        people.service()
        people.person("anna", Role.ADMIN)
        settings = {
            "WAYMARK_ACCESS": "required",
            "SESSION_KEY_FILE": tmp_path / "session_key",
        }
        with running(*(Service(mongod, tmp_path, (), **settings) for _ in range(2))) as services:
            ports = " ".join(f"127.0.0.1:{service.port}" for service in services)
            gateway = Gateway(tmp_path / "run", ingest=ports).start()
            try:
                yield gateway
            finally:
                gateway.close()


@pytest.mark.long
def test_a_session_holds_at_both_services_and_guessers_disturb_nobody(gateway: Gateway) -> None:
    anna = requests.Session()
    anna.trust_env = False
    answer = anna.post(f"{gateway.url}{LOG_IN}", json={"name": "anna", "password": PASSWORD})
    assert answer.status_code == 200

    def guess(number: int) -> int:
        # A name of a header is no other address: the gateway says where a request comes from.
        forged = {"X-Forwarded-For": f"198.51.100.{number}"}
        body = {"name": "anna", "password": f"guess number {number}"}
        return gateway.request("POST", LOG_IN, json=body, headers=forged).status_code

    def ask(_: int) -> int:
        with requests.Session() as another:
            another.trust_env = False
            another.cookies = anna.cookies
            return another.get(f"{gateway.url}/api/v1/staff", timeout=30).status_code

    with ThreadPoolExecutor(GUESSERS) as guessers, ThreadPoolExecutor(2) as readers:
        asked = readers.map(ask, range(60))
        statuses = Counter(guessers.map(guess, range(GUESSES)))
        assert set(asked) == {200}
    assert set(statuses) <= {401, 429}
    assert 4 <= statuses[401] <= 24  # two at each service at once, and what its delay lets through
    circuit = gateway.request("GET", "/_circuit/reads")
    assert circuit.headers["X-Circuit-State"] == "closed"
    answer = anna.post(f"{gateway.url}{LOG_IN}/everywhere")
    assert answer.status_code == 403
    csrf = {"X-CSRF-Token": anna.get(f"{gateway.url}{LOG_IN}").json()["csrf_token"]}
    assert anna.post(f"{gateway.url}{LOG_IN}/everywhere", headers=csrf).status_code == 204
    assert anna.get(f"{gateway.url}{LOG_IN}").status_code == 401
