"""What strangers, phones and readers get through the gateway, from services that require tokens."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from pymongo import MongoClient

from ingest.access import tokens
from ingest.rules.roles import Role
from ingest.storage.access.tokens import Token
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.service import Service, running
from tests.services.monitoring.conftest import Service as Monitoring

DETECTION = "/newbeacondetect?user_address=7&beacon_address=C2A628384B08&rssi=-20"
HISTORY = "/extractbeacon?staff_id=7&start_time=0&end_time=4102444800"
POLL = "/retrieveformonitoring"
SECRETS = {role: tokens.generate() for role in (Role.INGEST, Role.READ, Role.ADMIN)}


class Site(NamedTuple):
    gateway: Gateway
    services: list[Service]
    database: Any

    def status(self, path: str, role: Role | None, method: str = "GET", **more: Any) -> int:
        """Return the status of an answer to somebody with a token of that role, or without."""
        headers = {"Authorization": f"Bearer {SECRETS[role]}"} if role else {}
        headers |= more.pop("headers", {})
        return self.gateway.request(method, path, headers=headers, **more).status_code


@pytest.fixture(scope="module")
def site(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Site]]:
    """Return a function that makes a gateway with settings of its own, before the same services."""
    folder = tmp_path_factory.mktemp("site")
    page_token = folder / "page_token"
    page_token.write_text(tokens.generate())
    shared = {"WAYMARK_ACCESS": "required", "PAGE_TOKEN_FILE": str(page_token)}
    made: list[Gateway] = []
    with MongoClient[dict[str, Any]](mongod) as client:
        database = client["ICT3102"]
        for collection in ("staff", "latest", "notes", "tokens"):
            database[collection].delete_many({})
        for role, secret in SECRETS.items():
            digest = tokens.digest(secret)
            token = Token(digest[:8], digest, role.value, role, int(time.time()))
            database["tokens"].insert_one(token.document())
        services = [Service(mongod, folder, **shared) for _ in range(2)]
        with running(*services):

            def make(**settings: str) -> Site:
                run = folder / f"gateway-{len(made)}"
                run.mkdir()
                addresses = " ".join(f"127.0.0.1:{service.port}" for service in services)
                gateway = Gateway(run, ingest=addresses, access="required", **settings)
                gateway.answer_open()
                made.append(gateway)
                return Site(gateway.start(), services, database)

            yield make
            for gateway in made:
                gateway.close()


@pytest.fixture(scope="module")
def guarded(site: Callable[..., Site]) -> Site:
    return site()


def test_the_cache_of_the_pollers_gives_nothing_to_strangers(guarded: Site) -> None:
    for _ in range(3):
        assert guarded.status(POLL, Role.READ) == 200
        assert guarded.status(POLL, None) == 401
        assert guarded.status(POLL, Role.INGEST) == 403
    assert guarded.gateway.request("GET", "/_access").status_code == 404


def test_the_numbers_of_a_service_are_for_whoever_may_read(guarded: Site) -> None:
    for number in (0, 1):
        path = f"/_service/{number}/metrics"
        roles = (None, Role.INGEST, Role.READ, Role.ADMIN)
        assert [guarded.status(path, role) for role in roles] == [401, 403, 200, 200]
        assert guarded.services[number].get("/metrics").status_code == 401
    assert (
        "waymark_requests_total"
        in guarded.gateway.request(
            "GET", "/_service/1/metrics", headers={"Authorization": f"Bearer {SECRETS[Role.READ]}"}
        ).text
    )


def test_a_token_in_the_address_is_refused(guarded: Site) -> None:
    for path, role in ((DETECTION, Role.INGEST), (HISTORY, Role.READ)):
        assert guarded.status(f"{path}&token={SECRETS[role]}", None) == 401


def test_legacy_clients_may_send_it_so_where_that_is_allowed(site: Callable[..., Site]) -> None:
    allowed = site(legacy_parameter="allowed")

    def status(path: str, role: Role) -> int:
        return allowed.status(f"{path}{'&' if '?' in path else '?'}token={SECRETS[role]}", None)

    assert status(DETECTION, Role.INGEST) == status(HISTORY, Role.READ) == status(POLL, Role.READ)
    assert status(DETECTION, Role.INGEST) == 200
    assert status(HISTORY, Role.INGEST) == 403
    assert status("/api/v1/staff", Role.READ) == 401
    assert allowed.status(DETECTION, Role.INGEST) == 200  # the header goes on
    assert allowed.status(f"{DETECTION}&token=a%0d%0aX:%20y", None) == 401
    allowed.gateway.logged()
    for file in (allowed.gateway.log, allowed.gateway.errors):
        assert not any(secret in file.read_text() for secret in SECRETS.values())


def test_open_legacy_endpoints_open_nothing_else(
    mongod: str, site: Callable[..., Site], tmp_path: Path
) -> None:
    settings = {"WAYMARK_ACCESS": "required", "WAYMARK_LEGACY_ACCESS": "open"}
    with running(Service(mongod, tmp_path, **settings)) as [service]:
        opened = site(legacy_access="open")
        opened.gateway.close()
        opened.gateway.settings["ingest"] = f"127.0.0.1:{service.port}"
        opened.gateway.start()
        assert opened.status(DETECTION, None) == 200
        assert opened.status(HISTORY, None) == 200
        assert opened.status(POLL, None) == 200
        assert opened.status("/api/v1/staff", None) == 401
    assert "WAYMARK_LEGACY_ACCESS=open" in (tmp_path / f"ingest-{service.port}.log").read_text()


def test_a_stranger_makes_no_service_read_a_large_body(guarded: Site) -> None:
    body = json.dumps({"detections": [{"staff_id": "x" * 60}] * 4000}).encode()
    assert len(body) > 256 * 1024
    headers = {"Content-Type": "application/json"}
    path = "/api/v1/detections"
    assert guarded.status(path, None, "POST", data=body, headers=headers) == 401
    assert guarded.status(path, Role.READ, "POST", data=body, headers=headers) == 403
    assert guarded.status(path, Role.INGEST, "POST", data=body, headers=headers) in (400, 413)


@pytest.mark.long
def test_a_revoked_token_is_refused_everywhere_within_30_s(guarded: Site) -> None:
    secret = tokens.generate()
    digest = tokens.digest(secret)
    token = Token("revoked!", digest, "stolen", Role.READ, int(time.time()))
    guarded.database["tokens"].insert_one(token.document())
    headers = {"Authorization": f"Bearer {secret}"}

    def statuses() -> set[int]:
        urls = [service.url for service in guarded.services]
        asked = [requests.get(f"{url}/api/v1/staff", headers=headers, timeout=10) for url in urls]
        poll = guarded.gateway.request("GET", POLL, headers=headers)
        return {answer.status_code for answer in (*asked, poll)}

    eventually(lambda: statuses() == {200}, 30)
    now = int(time.time())
    guarded.database["tokens"].update_one({"_id": "revoked!"}, {"$set": {"revoked_at": now}})
    eventually(lambda: statuses() == {401}, 30)


@pytest.mark.long
def test_the_page_is_for_who_may_read_also_while_the_circuit_is_open(
    mongod: str, site: Callable[..., Site], tmp_path: Path
) -> None:
    page_token = tmp_path / "page_token"
    page_token.write_text(tokens.generate())
    shared = {"WAYMARK_ACCESS": "required", "PAGE_TOKEN_FILE": str(page_token)}
    services = [Service(mongod, tmp_path, **shared) for _ in range(2)]
    with running(*services):
        one = site()
        gateway = one.gateway
        monitoring = Monitoring(gateway.url, tmp_path, settings=shared)
        monitoring.start()
        try:
            gateway.close()
            gateway.settings["ingest"] = " ".join(f"127.0.0.1:{s.port}" for s in services)
            gateway.settings["monitoring"] = f"127.0.0.1:{monitoring.port}"
            gateway.start()
            assert one.status(DETECTION, Role.INGEST) == 200
            pages = ("/monitoring", "/monitoring/replay", "/monitoring/api/staff")
            data = ("/monitoring/latest", "/monitoring/api/system")
            for path in (*pages, *data, "/monitoring/static/screens/live.js"):
                assert one.status(path, None) == 401
                assert one.status(path, Role.INGEST) == 403
                assert one.status(path, Role.READ) == 200
            page = gateway.request(
                "GET",
                "/monitoring/live?x=1",
                headers={"Accept": "text/html"},
                allow_redirects=False,
            )
            assert page.status_code == 303
            assert page.headers["Location"] == "/monitoring/login?next=/monitoring/live%3Fx%3D1"

            headers = {"Authorization": f"Bearer {SECRETS[Role.READ]}"}

            def seen() -> dict[str, Any]:
                answer = gateway.request("GET", "/monitoring/latest", headers=headers)
                session: dict[str, Any] = answer.json()
                return session

            # With its own token, whoever looks.
            eventually(lambda: [person["staff_id"] for person in seen()["staff"]] == [7], 30)
            for service in services:
                service.kill()
            eventually(lambda: seen()["circuit"] != "closed", 30)
            assert [person["staff_id"] for person in seen()["staff"]] == [7]
            assert one.status("/monitoring/latest", None) == 401
            assert one.status("/monitoring/latest", Role.ADMIN) == 503  # never seen before
            assert gateway.request("GET", DETECTION).status_code == 503
            assert gateway.request("GET", POLL, headers=headers).status_code == 503
        finally:
            monitoring.kill()
