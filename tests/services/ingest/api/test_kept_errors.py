"""No error outlives its handling.

One that leads back to itself, by its frames, waits for the collector, which comes throttle: until
then it keeps a body, and all that was made of it.
"""

import gc
import http.client
import json
import logging
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from pymongo import MongoClient

from ingest.api import system
from ingest.api.openapi import document
from ingest.asgi import create_service
from ingest.config import Config
from ingest.rules.roles import Role
from ingest.storage.access import accounts, audit, tokens
from ingest.storage.access.accounts import Accounts, LastAdmin
from ingest.storage.database import availability
from ingest.storage.directory import beacons
from ingest.web.http_protocol import Protocol
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.services.ingest.api.garbage import Case, Garbage, largest
from tests.services.ingest.api.test_fuzz import answered

# Whose errors are looked for: pymongo remembers the last one of each server.
AWAY = {"mongodb_uri": "mongodb://127.0.0.1:9/", "mongodb_timeout_ms": 50}
PATIENCE = (  # a dead port needs none
    (accounts, "TIMEOUT_SECONDS"),
    (audit, "TIMEOUT_SECONDS"),
    (availability, "PROBE_SECONDS"),
    (beacons, "READ_TIMEOUT_SECONDS"),
    (system, "PING_TIMEOUT_SECONDS"),
    (tokens, "TIMEOUT_SECONDS"),
)
# How long an error may be being handled, on a busy machine; one that is kept stays.
HANDLED_SECONDS, PAUSE_SECONDS = 10, 0.02
OURS = ("ingest", "flask", "werkzeug", "uvicorn")


@contextmanager
def served(config: Config) -> Iterator[int]:
    """Serve in this process, as `python -m ingest` does; yield the port."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(
            create_service(config),
            port=port,
            http=Protocol,
            loop="uvloop",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            proxy_headers=False,
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started, 20)
        yield port
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Free nothing but what nobody refers to."""
    gc.collect()
    gc.freeze()
    gc.disable()
    logging.disable()  # the test runner keeps what is logged
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
        gc.unfreeze()


def kept() -> list[str]:
    """Return where the errors were raised that are still there."""
    return [
        f"{error!r:.99} {[f'{at.filename}:{at.name}' for at in traceback.extract_tb(frames)]}"
        for error in gc.get_objects()
        if isinstance(error, BaseException) and (frames := error.__traceback__)
        if any(
            frame.f_globals["__name__"].startswith(OURS) for frame, _ in traceback.walk_tb(frames)
        )
    ]


def kept_for_good() -> list[str]:
    """Return those of errors that are there at every look: some are just being handled."""
    errors = kept()
    end = time.monotonic() + HANDLED_SECONDS
    while errors and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)
        errors = [error for error in kept() if error in errors]
    return errors


def send(port: int, cases: list[Case]) -> set[int]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        return {answered(connection, case)[0] for case in cases}


def everything(rounds: int) -> list[Case]:
    garbage = Garbage(json.loads(json.dumps(document.document())), seed=5)
    return [*largest(), *(case for _ in range(rounds) for case in garbage.case_of_each_operation())]


@pytest.mark.parametrize(
    ("settings", "rounds", "statuses"),
    [
        ({"waymark_owntracks": "on"}, 8, {200, 400, 404, 405, 409, 413, 415}),
        ({"waymark_access": "required"}, 1, {401}),
        (AWAY | {"spool_max_detections": 0}, 1, {400, 503}),
        (AWAY | {"spool_max_detections": 2000}, 1, {202, 400, 503}),
    ],
    ids=["as it is", "strangers", "nothing takes anything", "the spool takes what fits"],
)
def test_no_error_waits_for_the_collector(
    settings: dict[str, Any],
    rounds: int,
    statuses: set[int],
    mongod: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in PATIENCE:
        monkeypatch.setattr(module, name, 0.05)
    always = {"mongodb_uri": mongod, "spool_file": str(tmp_path / "spool.db")}
    with served(Config(**(always | settings))) as port, nothing_collected():
        assert send(port, everything(rounds)) >= statuses
        assert kept_for_good() == []


def test_what_a_transaction_refuses_waits_for_no_collector(mongod: str) -> None:
    with MongoClient[dict[str, Any]](mongod) as client:
        client["ICT3102"]["accounts"].delete_many({})
        all_accounts = Accounts(client["ICT3102"])
        all_accounts.put("anna", Role.ADMIN, "a hash", time.time())
        with nothing_collected():
            with suppress(LastAdmin):
                all_accounts.remove("anna")
            assert kept() == []
        client["ICT3102"]["accounts"].delete_many({})
