"""How often anybody may try to log in, and what that costs."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest.access import attempts, oidc, passwords
from ingest.access.attempts import Attempts, Source
from ingest.access.devices import Device
from ingest.access.passwords import Passwords
from ingest.errors import Busy, TooManyAttempts
from ingest.rules.roles import Role
from ingest.web import lanes
from scripts.processes.waiting import eventually
from tests.services.ingest.people import PASSWORD, Office, Person

HERE, THERE = "192.0.2.1", "198.51.100.7"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counted(clock: Clock) -> Attempts:
    return Attempts(clock)


def wait_for(counted: Attempts, name: str, address: str, device: Device | None = None) -> int:
    """Try once; return how long that has to wait, 0 where it counts."""
    try:
        counted.begin(name, Source(address, device))
    except TooManyAttempts as refused:
        return refused.wait_seconds
    return 0


def test_the_delay_grows_and_what_is_refused_does_not_make_it_longer(
    counted: Attempts, clock: Clock
) -> None:
    waits = []
    for _ in range(14):
        while wait := wait_for(counted, "anna", HERE):
            waits.append(wait)
            assert wait_for(counted, "anna", HERE) == wait
            clock.now += wait - 0.5
            assert wait_for(counted, "anna", HERE) == 1
            clock.now += 0.5
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    clock.now += attempts.FORGET_SECONDS
    assert [wait_for(counted, "anna", HERE) for _ in range(3)] == [0, 0, 1]


def test_an_address_that_tries_all_names_is_delayed_too(counted: Attempts) -> None:
    waits = [wait_for(counted, f"name-{n}", HERE) for n in range(11)]
    assert waits == [0] * 10 + [1]
    assert wait_for(counted, "", HERE) == 1  # nor what is no name
    assert wait_for(counted, "name-1", THERE) == 0


def test_of_ipv6_a_subscriber_counts_as_one_address(counted: Attempts) -> None:
    waits = [wait_for(counted, "anna", f"2001:db8:0:1:{n}::1") for n in range(1, 4)]
    assert waits == [0, 0, 1]
    assert wait_for(counted, "anna", "2001:db8:0:2::1") == 0
    assert [wait_for(counted, "anna", "no address") for _ in range(3)] == [0, 0, 1]


def test_nobody_keeps_the_owner_out_for_long(counted: Attempts, clock: Clock) -> None:
    for number in range(3000):  # of as many machines, each of which tries at once
        clock.now += 0.1
        wait_for(counted, "anna", f"10.0.{number // 250}.{number % 250}")
    assert wait_for(counted, "anna", HERE) <= attempts.ACCOUNT.longest_seconds == 4


def test_in_ones_own_browser_only_ones_own_failures_count(counted: Attempts) -> None:
    browser = Device("a browser", ("ben", "anna"))
    for n in range(60):  # past each bound: of the pair, of the address, of the account
        wait_for(counted, f"name-{n}", HERE)
        wait_for(counted, "anna", HERE)
        wait_for(counted, "anna", f"10.0.0.{n}")
    assert wait_for(counted, "anna", HERE) > 0
    assert [wait_for(counted, "anna", HERE, browser) for _ in range(3)] == [0, 0, 1]
    counted.succeeded("anna", Source(HERE, browser))
    assert wait_for(counted, "anna", HERE, browser) == 0
    assert wait_for(counted, "ben", HERE, browser) == 0
    assert wait_for(counted, "", HERE, browser) == 0  # by a provider, or with a token
    assert wait_for(counted, "carla", HERE, browser) > 0  # who never logged in there
    assert wait_for(counted, "anna", HERE) > 0  # the colleague has to wait as before


def test_a_good_log_in_forgets_ones_own_failures_and_no_others(counted: Attempts) -> None:
    for n in range(9):
        wait_for(counted, f"name-{n}", HERE)
    wait_for(counted, "mallory", HERE)
    counted.succeeded("mallory", Source(HERE))  # with an account of one's own
    assert [wait_for(counted, "a", HERE), wait_for(counted, "b", HERE)] == [0, 1]


def test_what_is_remembered_is_bounded(counted: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_REMEMBERED", 30)
    for n in range(200):
        wait_for(counted, f"name-{n}", f"10.0.0.{n}")
    assert len(counted._failures) == 30
    assert wait_for(counted, "name-199", "10.0.0.199") == 0
    assert wait_for(counted, "name-199", "10.0.0.199") == 1


def test_many_at_once_gain_nothing(counted: Attempts) -> None:
    with ThreadPoolExecutor(16) as threads:
        waits = list(threads.map(lambda _: wait_for(counted, "anna", HERE), range(64)))
    assert waits.count(0) == 2


def test_who_has_to_wait_is_told_so_before_anything_is_hashed(
    waymark: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = waymark.service()
    waymark.made[0].access.login._attempts = Attempts(Clock())
    waymark.person("anna", Role.ADMIN)
    hashed: list[str] = []
    verify = Passwords.verify

    def counting(self: Passwords, stored: str | None, password: str) -> bool:
        hashed.append(password)
        return verify(self, stored, password)

    monkeypatch.setattr(Passwords, "verify", counting)
    guesser = Person(app, address=HERE)
    statuses = [guesser.log_in("anna", f"guess number {n}").status_code for n in range(6)]
    assert statuses == [401, 401, 429, 429, 429, 429]
    assert len(hashed) == 2
    answer = guesser.log_in("anna")  # the right one has to wait as well
    assert answer.get_json()["code"] == "too_many_attempts"
    assert int(answer.headers["Retry-After"]) == 1
    assert Person(app, address=THERE).log_in("anna").status_code == 200
    # Guesses of the old password count as well: a stolen session does not open the account.
    owner = Person(app, address="192.0.2.99")
    owner.log_in("anna")
    body = {"old": "not the password", "new": "a password to come"}
    changes = [owner.open("PUT", "/session/password", json=body).status_code for _ in range(4)]
    assert changes == [400, 400, 429, 429]


def test_a_colleague_behind_the_same_address_keeps_nobody_out_of_their_own_browser(
    waymark: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = [waymark.service() for _ in range(2)]
    clock = Clock()
    for made in waymark.made:
        made.access.login._attempts = Attempts(clock)
    for name in ("anna", "ben", "mallory"):
        waymark.person(name, Role.READ)
    anna, mallory = Person(services[0]), Person(services[0])
    assert [anna.log_in(name).status_code for name in ("anna", "ben", "anna")] == [200] * 3
    assert mallory.log_in("mallory").status_code == 200
    kept = {client: client.client.get_cookie("waymark_device") for client in (anna, mallory)}
    assert all(
        cookie and cookie.http_only and cookie.same_site == "Lax" for cookie in kept.values()
    )

    def status(name: str, device: str, service: int, password: str = PASSWORD) -> int:
        browser = Person(services[service])
        browser.client.set_cookie("waymark_device", device)
        return browser.log_in(name, password).status_code

    def kept_by(person: Person) -> str:
        cookie = kept[person]
        assert cookie
        return cookie.value

    for service in range(2):
        guesses = [status("anna", "", service, "a wrong password") for _ in range(3)]
        assert guesses == [401, 401, 429]
        for device in ("", kept_by(mallory), kept_by(anna)[:-1], f"x{kept_by(anna)}"):
            assert status("anna", device, service) == 429
        assert status("anna", kept_by(anna), service) == 200
        assert status("ben", kept_by(anna), service) == 200  # they share that browser
    wrong = [status("anna", kept_by(anna), 0, "a wrong password") for _ in range(3)]
    assert wrong == [401, 401, 429]  # who has taken the browser guesses no oftener


def test_who_comes_when_too_many_do_is_sent_away_at_once(
    waymark: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = waymark.service()
    waymark.person("anna", Role.READ)
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 60.0)
    hasher = waymark.made[0].access.passwords
    people = [Person(app, address=f"192.0.2.{n}") for n in range(3)]
    statuses: list[int] = []
    with hasher._turn:
        waiting = [
            threading.Thread(
                target=lambda person=person: statuses.append(person.log_in("anna").status_code)
            )
            for person in people
        ]
        for waiter in waiting:
            waiter.start()
        eventually(lambda: hasher._places._value == 0)
        answer = Person(app, address=THERE).log_in("anna")
        assert (answer.status_code, answer.get_json()["code"]) == (429, "too_many_waiting")
        assert "Retry-After" in answer.headers
        assert not statuses
    for waiter in waiting:
        waiter.join()
    assert statuses == [200, 200, 200]
    # One thread is always left to say so, and no other request waits in this lane.
    assert lanes.PEOPLE.threads > 1 + passwords.WAITING + oidc.WAITING
    for path in ("session", "session/password", "session/oidc", "accounts/a"):
        assert lanes.lane_of(f"/api/v1/{path}") is lanes.PEOPLE


def test_who_waits_too_long_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 0.01)
    hasher = Passwords()
    with hasher._turn, pytest.raises(Busy):
        hasher.hash(PASSWORD)
    assert hasher.verify(hasher.hash(PASSWORD), PASSWORD)  # all places are free again
    assert not hasher.verify(hasher.hash(PASSWORD), PASSWORD + " ")
    assert not hasher.verify(None, PASSWORD)
    assert not hasher.verify("no hash", PASSWORD)


MEASURED = """
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from ingest.access.passwords import Passwords
from ingest.errors import Busy

def kib(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

hasher = Passwords()
hasher.hash("the first one loads the library")
def hash_one(number):
    with suppress(Busy):
        hasher.hash(f"number {number}")
with ThreadPoolExecutor(16) as threads:
    list(threads.map(str, range(16)))
    before = kib("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    list(threads.map(hash_one, range(64)))
    print(kib("VmHWM") - before, kib("VmRSS") - before)
"""


@pytest.mark.long
def test_a_hash_takes_8_mib_and_gives_them_back_however_many_come(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        cwd=root / "services" / "ingest",
        env={"MALLOC_ARENA_MAX": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    peak, left = map(int, done.stdout.split())
    assert 7000 < peak < 8.5 * 1024, "else it is no measure"
    assert left < 1024
