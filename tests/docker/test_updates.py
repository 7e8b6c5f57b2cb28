"""An update makes anew what changed and nothing else, a service at a time, and clients go on."""

import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.client import Client
from tests.docker.conftest import MONGO, ONE_SHOT, PROJECT, Stack, identities

PAGE = "services/monitoring/monitoring/static/style.css"
INIT = "mongo/bootstrap.py"
INGEST = "services/ingest/ingest/__init__.py"
GATEWAY = "gateway/start.py"
NOT_COPIED = (".git", ".venv", ".cache", "data", ".env", "__pycache__", ".*_cache", "node_modules")
STAFF = range(900, 904)  # of no other test
FIRST = 1_600_000_000  # detections are so many seconds after it
LAST = FIRST + 1_000_000
REPEAT_SECONDS = 1.0  # a phone waits before it sends again
PAUSE_SECONDS = 0.3
UPDATE_SECONDS = 1200.0
HEAL_SECONDS = 180.0
# While the database does not answer, a detection waits, and a read says so.
ANSWERS = {("detect", 200), ("detect", 202), ("get", 200), ("get", 503)}
STALLED = 0.05  # of so many a stall may cost the answer
REFUSED_SECONDS = 60.0  # docs/measurements.md has what it took


class Checkout:
    """A copy of the checkout that may change, and what makes the stack anew from it."""

    def __init__(self, folder: Path, stack: Stack) -> None:
        self._folder = folder
        self._stack = stack
        self._files = ["-f", "docker-compose.yml"]
        self._files += ["-f", "tests/docker/emulated.yml"] * stack.images.emulated

    def change(self, file: str) -> None:
        path = self._folder / file
        comment = "/* changed */" if path.suffix == ".css" else "# changed"
        path.write_text(f"{path.read_text()}\n{comment}\n")

    @contextmanager
    def hanging(self, file: str) -> Iterator[None]:
        """Have a program never get beyond this file."""
        path = self._folder / file
        text = path.read_text()
        path.write_text(f"{text}\nimport time\n\ntime.sleep(100_000)\n")
        try:
            yield
        finally:
            path.write_text(text)

    def compose(self, *arguments: str) -> None:
        self._run("docker", "compose", *self._files, *arguments)

    def update(self, **settings: str) -> None:
        self._run("./scripts/update", *self._files, **settings)

    def try_update(self, **settings: str) -> subprocess.CompletedProcess[str]:
        return self._try("./scripts/update", *self._files, **settings)

    def _run(self, *command: str, **settings: str) -> None:
        done = self._try(*command, **settings)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"

    def _try(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._stack.docker.environment | {"COMPOSE_PROJECT_NAME": PROJECT} | settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=UPDATE_SECONDS,
        )


@pytest.fixture(scope="module")
def checkout(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    folder = tmp_path_factory.mktemp("update") / "checkout"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    yield Checkout(folder, stack)
    Checkout(ROOT, stack).update()  # other tests go on with what stands there


def made_anew(stack: Stack, before: dict[str, tuple[str, str]]) -> set[str]:
    now = identities(stack)  # what has ended, Compose starts again
    return {name for name in now if now[name] != before[name]} - ONE_SHOT


class Phone(threading.Thread):
    """Detects and reads all the time; what was not taken is sent again, with the same event_id."""

    def __init__(self, url: str, staff_id: int) -> None:
        super().__init__(daemon=True)
        self.client = Client(url)
        self.staff_id = staff_id
        self.taken = 0
        self.told: Counter[tuple[str, int]] = Counter()
        self.refused = 0  # by the gateway, without a service
        self.away: list[float] = []
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(PAUSE_SECONDS):
            number = self.taken + 1
            detection = {"event_id": f"u{number}", "timestamp": FIRST + number}
            while (status := self._status("detect", self.staff_id, **detection)) not in (200, 202):
                if 400 <= status < 500:  # nothing will change that
                    return
                time.sleep(REPEAT_SECONDS)
            self.taken = number
            # And once more, as a phone that did not hear the answer.
            self._status("detect", self.staff_id, **detection)
            span = {"start_time": FIRST + number, "end_time": FIRST + number}
            self._status("get", "/extractbeacon", staff_id=self.staff_id, **span)

    def _status(self, call: str, *arguments: object, **more: object) -> int:
        try:
            answer = getattr(self.client, call)(*arguments, **more)
            status: int = answer.status_code
            self.refused += answer.headers.get("X-Circuit-State") == "open"
        except requests.RequestException as error:
            status = 0
            if isinstance(error, requests.ConnectionError):
                self.away.append(time.monotonic())
        self.told[call, status] += 1
        return status

    def stop(self) -> None:
        self._end.set()
        self.join(HEAL_SECONDS)
        assert not self.is_alive(), f"not answered: {self.told}"

    def stored(self) -> list[int] | None:
        """Return the numbers of what is there, None while that cannot be told."""
        span = {"start_time": FIRST, "end_time": LAST}
        answer = self.client.get("/extractbeacon", staff_id=self.staff_id, **span)
        return (
            [row["timestamp"] - FIRST for row in answer.json()["location"]] if answer.ok else None
        )

    def is_exact(self) -> bool:
        """Tell whether all that was taken is there, each once."""
        return self.stored() == list(range(self.taken, 0, -1))


def told_to(people: list[Phone]) -> Counter[tuple[str, int]]:
    """Return how often each kind of request had each status."""
    return sum((person.told for person in people), Counter())


@contextmanager
def phones(stack: Stack) -> Iterator[list[Phone]]:
    """Have phones at work; afterwards, all that was taken is there, each once."""
    people = [Phone(stack.url, staff_id) for staff_id in STAFF]
    for person in people:
        person.taken = len(person.client.history(person.staff_id))
        person.start()
    try:
        yield people
    finally:
        for person in people:
            person.stop()
    assert all(status < 400 or status >= 500 for _, status in told_to(people)), told_to(people)
    eventually(lambda: all(person.is_exact() for person in people), HEAL_SECONDS)


def test_a_file_of_the_page_makes_only_the_page_anew(stack: Stack, checkout: Checkout) -> None:
    before = identities(stack)
    checkout.change(PAGE)
    checkout.compose("up", "--detach", "--build")
    assert made_anew(stack, before) == {"monitoring"}
    same = {name: one[0] for name, one in identities(stack).items() if name in ONE_SHOT}
    assert same == {name: before[name][0] for name in ONE_SHOT}
    eventually(lambda: not stack.unhealthy(), HEAL_SECONDS)
    before = identities(stack)
    checkout.change(PAGE)
    checkout.update()
    assert made_anew(stack, before) == {"monitoring"}


def test_while_the_ingest_services_change_every_request_is_answered(
    stack: Stack, checkout: Checkout
) -> None:
    before = identities(stack)
    checkout.change(INGEST)
    with phones(stack) as people:
        checkout.update()
    assert made_anew(stack, before) == {"ingest-1", "ingest-2"}
    answers = told_to(people)
    assert not any(person.refused for person in people), answers
    # Of a database that stalls, as on a busy machine, the services themselves say so.
    assert set(answers) <= ANSWERS
    assert answers["get", 503] < STALLED * answers["get", 200], answers
    assert min(person.taken for person in people) > 1


def cut_off_at(service: str, folder: Path, path: str) -> str:
    """Return a PATH where docker ends who has it make this service anew, as a lost session may."""
    docker = folder / "docker"
    docker.write_text(
        f"""#!/bin/sh
{shutil.which("docker", path=path)} "$@"
status=$?
case "$*" in *" up --detach "*" {service}") kill -9 $PPID ;; esac
exit $status
"""
    )
    docker.chmod(0o755)
    return f"{folder}:{path}"


def test_an_update_that_was_cut_or_gave_up_goes_on_with_the_service_it_replaced(
    stack: Stack, checkout: Checkout, tmp_path: Path
) -> None:
    before = identities(stack)
    with checkout.hanging(INGEST):
        path = cut_off_at("ingest-1", tmp_path, stack.docker.environment["PATH"])
        assert checkout.try_update(PATH=path).returncode == -signal.SIGKILL
        for _ in range(2):  # nothing has changed since, and it waits all the same
            done = checkout.try_update(WAYMARK_READY_SECONDS="5")
            assert "ingest-1 is not ready after 5 s; what comes after it was not" in done.stderr
            assert done.returncode == 1
            assert made_anew(stack, before) == {"ingest-1"}
    checkout.update()
    assert made_anew(stack, before) == {"ingest-1"}


def test_while_the_gateway_changes_phones_send_again(
    stack: Stack, checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    before = identities(stack)
    checkout.change(GATEWAY)
    with phones(stack) as people:
        checkout.update()
    assert made_anew(stack, before) == {"gateway"}
    away = sorted(moment for person in people for moment in person.away)
    assert away
    with capsys.disabled():
        print(f"\nthe gateway refused for {away[-1] - away[0]:.1f} s")
    assert away[-1] - away[0] < REFUSED_SECONDS


@pytest.fixture
def other_mongo(stack: Stack, checkout: Checkout) -> Iterator[str]:
    """MongoDB's image, as another one."""
    docker, name = stack.docker, f"{PROJECT}-other-mongo"
    container = docker("create", stack.images.mongo)
    try:
        docker("commit", "--change", "LABEL other=1", container, name)
    finally:
        docker("rm", "--volumes", container)
    yield name
    checkout.update()  # else the image could not go
    docker("image", "rm", name)


def test_while_mongodb_changes_nothing_is_lost(
    stack: Stack, checkout: Checkout, other_mongo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = identities(stack)
    checkout.change(INIT)
    with phones(stack) as people:
        checkout.update(MONGO_IMAGE=other_mongo)
    assert made_anew(stack, before) == MONGO
    assert identities(stack)["mongo-init"][0] != before["mongo-init"][0]
    answers = told_to(people)
    with capsys.disabled():
        print(f"\nanswers while MongoDB changed: {dict(answers)}")
    # A shard is away for a while: what is detected waits, and a read says so. Who meets a database
    # that just goes waits for it first: with a stall of the machine, longer than the gateway does.
    assert set(answers) <= ANSWERS | {("detect", 503)}
    assert answers["detect", 503] < STALLED * answers["detect", 202]
    assert answers["detect", 202]
