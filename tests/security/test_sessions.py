"""Sessions are not fixed, not shared and not to be measured."""

import random
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from ingest.access.tokens import digest, generate
from ingest.access.visitor import Credentials
from ingest.assembly import Context
from tests.security.site import Guarded
from tests.security.visitors import COOKIE, PASSWORD, SESSION, TLS_COOKIE
from tests.services.ingest.people import office as people_of

ROUNDS, CALLS = 300, 4_000
# How often the slower of two draws is the one, where nothing tells them apart: half of the time.
# 300 draws of each differ from that by 0.024 (one sigma), 4,000 by 0.006.
BY_NETWORK, IN_PROCESS = 0.12, 0.05


def log_in(guarded: Guarded, cookies: dict[str, str] | None = None) -> requests.Response:
    body = {"name": "reader", "password": PASSWORD}
    url = f"{guarded.url}{SESSION}"
    answer = requests.post(url, json=body, cookies=cookies, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer


def status(guarded: Guarded, cookie: str) -> int:
    headers = {"Cookie": cookie}
    return requests.get(f"{guarded.url}{SESSION}", headers=headers, timeout=30).status_code


@pytest.mark.long
def test_a_session_that_somebody_fixed_is_not_taken(guarded: Guarded) -> None:
    assert guarded.visitors  # who brings the accounts
    before = log_in(guarded).cookies[COOKIE]
    for fixed in ("f" * 60, before):
        answer = log_in(guarded, {COOKIE: fixed, TLS_COOKIE: "f" * 60})
        made = answer.cookies[COOKIE]
        assert made != fixed
        assert status(guarded, f"{COOKIE}={made}") == 200
        for cookie in answer.raw.headers.getlist("Set-Cookie"):
            same_site = "Strict" if cookie.startswith(f"{COOKIE}=") else "Lax"  # of the browser
            assert {"HttpOnly", "Path=/", f"SameSite={same_site}"} <= set(cookie.split("; "))
    assert status(guarded, f"{COOKIE}={'f' * 60}") == 401


def test_only_a_log_in_gives_a_cookie(guarded: Guarded) -> None:
    for path in ("/monitoring/login", "/healthz", SESSION, "/api/v1/staff"):
        answer = requests.get(f"{guarded.url}{path}", timeout=30)
        assert "Set-Cookie" not in answer.headers
    wrong = {"name": "reader", "password": "wrong" * 3}
    answer = requests.post(f"{guarded.url}{SESSION}", json=wrong, timeout=30)
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers


def larger(sample: Sequence[float], others: Sequence[float]) -> float:
    """Return how often one of some is larger than one of the others: their ranks, no outliers."""
    ranked = sorted(
        chain(((seconds, 0) for seconds in others), ((seconds, 1) for seconds in sample))
    )
    ranks = sum(rank for rank, (_, of_some) in enumerate(ranked, start=1) if of_some)
    return (ranks - len(sample) * (len(sample) + 1) / 2) / (len(sample) * len(others))


def measured(ask: Callable[[str], object], rounds: int, *kinds: Callable[[], str]) -> list[Any]:
    """Return the times of each kind, asked for in turns and in no order."""
    times: list[list[float]] = [[] for _ in kinds]
    for _ in range(rounds):
        for number in random.sample(range(len(kinds)), len(kinds)):
            secret = kinds[number]()
            began = time.perf_counter()
            ask(secret)
            times[number].append(time.perf_counter() - began)
    return times


def nearly(secret: str) -> Callable[[], str]:
    """Return what makes secrets that share all but their end with a good one."""
    return lambda: secret[:-6] + generate()[-6:]


@pytest.mark.parametrize(("rounds", "bound"), [(ROUNDS, BY_NETWORK), (CALLS, IN_PROCESS)])
def test_a_difference_would_be_noticed(rounds: int, bound: float) -> None:
    """Of half of what the times vary by themselves, whatever that is."""
    chance = random.Random(1)
    noise = [[chance.gauss(100, 10) for _ in range(rounds)] for _ in range(2)]
    assert abs(larger(*noise) - 0.5) < bound
    assert larger([seconds + 5 for seconds in noise[0]], noise[1]) - 0.5 > bound


@pytest.mark.long
def test_the_time_of_a_refusal_tells_nothing(guarded: Guarded) -> None:
    """A token that is nearly right takes no longer than one that is not."""
    url = f"{guarded.urls[1]}{SESSION}"
    with requests.Session() as session:
        session.trust_env = False

        def ask(secret: str) -> None:
            headers = {"Authorization": f"Bearer {secret}"}
            assert session.get(url, headers=headers, timeout=30).status_code == 401

        close, far = measured(ask, ROUNDS, nearly(guarded.admin), generate)
    assert abs(larger(close, far) - 0.5) < BY_NETWORK


def test_the_check_itself_tells_nothing(mongod: str, tmp_path: Path) -> None:
    """Without the noise of a connection: the administrator's token, and one of the database."""
    admin = generate()
    with (
        MongoClient[dict[str, Any]](mongod) as client,
        people_of(mongod, client["ICT3102"], tmp_path) as people,
    ):
        settings = {"waymark_admin_token_sha256": digest(admin)}
        context: Context = people.service(**settings).extensions["context"]
        context.access.cache.refresh()

        def ask(secret: str) -> None:
            assert context.access.admission.visitor(Credentials(f"Bearer {secret}")) is None

        close, far = measured(ask, CALLS, nearly(admin), generate)
    assert abs(larger(close, far) - 0.5) < IN_PROCESS
