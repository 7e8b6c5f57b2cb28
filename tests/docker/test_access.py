"""The stack as it faces other machines: with tokens, made by its own commands."""

import hashlib
import re
import secrets
from collections.abc import Callable

import pytest
import requests

from scripts.processes.waiting import eventually
from tests.docker.conftest import Stack, identities
from tests.log_in import logged_in

DETECTION = "/newbeacondetect?user_address=0&beacon_address=C2A628384B08&rssi=-20"
HEAL_SECONDS = 180.0


@pytest.fixture(scope="module")
def admin(stack: Stack) -> str:
    """Have the stack require tokens; return the administrator's.

    It also wants more memory than there is: a first `up` would fail.
    """
    secret = f"wm_{secrets.token_urlsafe(32)}"
    stack.docker.environment |= {
        "WAYMARK_ACCESS": "required",
        "WAYMARK_ADMIN_TOKEN_SHA256": hashlib.sha256(secret.encode()).hexdigest(),
        "WAYMARK_MEMORY_NEEDED": "1000000000",
    }
    stack.compose("up", "--detach", "--wait")
    return secret


@pytest.fixture
def status(stack: Stack) -> Callable[[str, str], int]:
    def ask(path: str, secret: str) -> int:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        try:
            return requests.get(f"{stack.url}{path}", headers=headers, timeout=30).status_code
        except requests.ConnectionError:  # the gateway itself has just been made anew
            return 0

    return ask


@pytest.mark.parametrize(
    "published", [{"WAYMARK_PUBLISH": "192.0.2.1"}, {"WAYMARK_TRUSTED_PROXIES": "192.0.2.1"}]
)
def test_what_others_would_reach_without_a_token_is_refused_and_what_runs_goes_on(
    stack: Stack, published: dict[str, str]
) -> None:
    before = identities(stack)
    done = stack.try_compose("up", "--detach", environment=published)
    assert done.returncode != 0
    assert done.stderr.count("./scripts/configure, which has to run before") == 1
    assert identities(stack) == before


def test_what_has_run_here_runs_on_where_it_would_not_start(stack: Stack, admin: str) -> None:
    assert admin
    assert "It has run here, so it goes on" in stack.compose("logs", "--no-log-prefix", "secrets")


def test_strangers_get_nothing_and_the_administrator_all(
    admin: str, status: Callable[[str, str], int]
) -> None:
    paths = (DETECTION, "/retrieveformonitoring", "/api/v1/staff", "/monitoring", "/docs")
    eventually(lambda: {status(path, "") for path in paths} == {401}, HEAL_SECONDS)
    eventually(lambda: {status(path, admin) for path in paths} <= {200, 202}, HEAL_SECONDS)
    assert status("/healthz", "") == 200


def test_a_person_logs_in_until_the_account_is_gone(stack: Stack, admin: str) -> None:
    assert admin
    run = ("run", "--rm", "--no-TTY", "account")
    text = stack.compose(*run, "create", "anna", "--role", "admin")
    stack.compose(*run, "create", "ben", "--role", "admin")  # the last could not be removed
    with logged_in(stack.url, text) as anna:
        paths = ("/monitoring", "/monitoring/latest", "/api/v1/now", "/api/v1/accounts")
        assert {anna.get(f"{stack.url}{path}").status_code for path in paths * 2} == {200}
        stack.compose(*run, "remove", "anna")
        latest = f"{stack.url}/monitoring/latest"
        eventually(lambda: {anna.get(latest).status_code for _ in "1234"} == {401}, 60)


def test_the_command_makes_lists_and_revokes_tokens(
    stack: Stack, admin: str, status: Callable[[str, str], int]
) -> None:
    run = ("run", "--rm", "--no-TTY", "token")
    phone = stack.compose(*run, "create", "--role", "ingest", "phones").splitlines()[-1]
    eventually(lambda: status(DETECTION, phone) in (200, 202), HEAL_SECONDS)
    # The other service may come to know it a moment later.
    eventually(lambda: status("/api/v1/staff", phone) == 403, HEAL_SECONDS)
    listed = stack.compose(*run, "list")
    [token_id] = re.findall(r"^(\S+)\s+ingest\s+phones", listed, re.MULTILINE)
    stack.compose(*run, "revoke", token_id)
    eventually(lambda: status(DETECTION, phone) == 401, 60)
    logs = stack.compose("logs")
    assert admin not in logs
    assert phone not in logs
