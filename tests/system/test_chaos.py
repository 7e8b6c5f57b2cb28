"""Three minutes of random faults: ingest services killed, stopped and back, under steady load."""

import random
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest
import requests

from tests.system.conftest import Stack, eventually

SECONDS = 180
RATE = 60.0
CLIENTS = 60  # each once a second: one that waits for a hanging service delays nobody else
STAFF = 12
ALLOWED = {200, 202, 400, 429, 503}
SEED = 4


@pytest.fixture(scope="module")
def stack(root: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack of its own: this test breaks it."""
    stack = Stack(root, tmp_path_factory.mktemp("chaos") / "data")  # type: ignore[arg-type]
    stack.up()
    yield stack
    stack.down()


class Phones:
    """Clients that repeat a detection, with its event_id, until it is confirmed."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._end = time.monotonic() + SECONDS
        self._lock = threading.Lock()
        self.answers: Counter[int | str] = Counter()
        self.acknowledged: Counter[str] = Counter()
        self.worst_seconds = 0.0
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CLIENTS)]

    def __enter__(self) -> "Phones":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        staff_id = f"chaos-{number % STAFF}"
        time.sleep(number / CLIENTS)
        due = time.monotonic()
        with requests.Session() as session:
            session.trust_env = False
            while due < self._end:
                time.sleep(max(0.0, due - time.monotonic()))
                due = max(due + CLIENTS / RATE, time.monotonic())
                if random.random() < 0.15:
                    self._ask(session, random.choice(["/retrieveformonitoring", "/extractbeacon"]))
                elif self._report(session, staff_id):
                    with self._lock:
                        self.acknowledged[staff_id] += 1

    def _ask(self, session: requests.Session, path: str) -> None:
        parameters = {"staff_id": "nobody", "start_time": "0", "end_time": "1"}
        self._count(session, "GET", path, params=parameters)

    def _report(self, session: requests.Session, staff_id: str) -> bool:
        event = {"event_id": uuid.uuid4().hex, "timestamp": int(time.time())}
        body = event | {"user_address": staff_id, "beacon_address": "C2A628384B08", "rssi": -20}
        while True:  # also past the end: what was begun is brought home
            status = self._count(session, "POST", "/newbeacondetect", data=body)
            if status != 503:
                return status in (200, 202)
            time.sleep(0.5)

    def _count(self, session: requests.Session, method: str, path: str, **more: object) -> object:
        began = time.monotonic()
        answer: int | str
        try:
            answer = session.request(method, self._stack.url + path, timeout=30, **more).status_code  # type: ignore[arg-type]
        except requests.RequestException as error:
            answer = repr(error)
        with self._lock:
            self.answers[answer] += 1
            self.worst_seconds = max(self.worst_seconds, time.monotonic() - began)
        return answer


def tree(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def send(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        if process.is_running():
            process.send_signal(number)


def break_things(stack: Stack, chance: random.Random, seconds: float) -> Counter[str]:
    """Kill or stop one or both ingest services, again and again; return what was done."""
    done: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pids = stack.pids()
        for name in chance.choice([["ingest-1"], ["ingest-2"], ["ingest-1", "ingest-2"]]):
            processes = tree(pids[name]) if name in pids else []
            fault = chance.choice(["killed", "stopped"])
            done[fault] += bool(processes)
            send(processes, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
            threading.Timer(chance.uniform(1, 12), send, (processes, signal.SIGCONT)).start()
        time.sleep(chance.uniform(1, 10))
    return done


def test_random_faults_lose_nothing_and_surprise_nobody(stack: Stack) -> None:
    gateway = psutil.Process(stack.pids()["gateway"])
    with Phones(stack) as phones:
        done = break_things(stack, random.Random(SEED), SECONDS - 15)
    print(done, phones.answers, f"worst {phones.worst_seconds:.1f} s")
    assert gateway.is_running()
    assert set(phones.answers) <= ALLOWED, phones.answers
    assert min(done["killed"], done["stopped"]) >= 8
    assert phones.answers[200] > RATE * SECONDS / 4
    assert phones.answers[503] > 0  # else nothing was tested
    assert phones.worst_seconds < 12
    eventually(lambda: stack.script("status").returncode == 0, 40)
    eventually(lambda: stack.get("/extractbeacon", staff_id="x", start_time=0, end_time=1).ok, 25)
    stored = {staff_id: len(stack.history(staff_id)) for staff_id in phones.acknowledged}
    assert stored == dict(phones.acknowledged)
