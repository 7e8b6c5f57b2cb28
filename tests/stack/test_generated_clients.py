"""Clients that generators make of /openapi.json: they do what a client of ours would."""

import importlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.stack.conftest import Stack

CONFIGURATION = Path("docs/openapi-python-client.yaml").resolve()
MAC = "C2A628040002"
CSV = b"mac,level,location,x,y\nAABBCC990001,4,Room 4-99,1,2\n"

pytestmark = pytest.mark.long


@pytest.fixture
def described(stack: Stack, tmp_path: Path) -> Path:
    """Return a file with the description as the gateway gives it."""
    file = tmp_path / "openapi.json"
    file.write_bytes(stack.get("/api/v1/openapi.json").content)
    return file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose packages can be imported while the test runs."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def generate(command: Sequence[str], folder: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def changed_people(ask: Callable[..., str], **begin: str) -> set[object]:
    """Return who is in the feed, up to its end: other tests may have filled whole pages of it."""
    people: set[object] = set()
    where = begin
    while True:
        *lines, last = map(json.loads, ask(limit=1000, **where).splitlines())
        if not lines:
            return people
        people |= {line["staff_id"] for line in lines if "staff_id" in line}
        where = {"after": last["next"]}


def test_openapi_python_client(stack: Stack, described: Path, folder: Path) -> None:
    name = "made_by_openapi_python_client"
    options = ["--config", str(CONFIGURATION), "--meta", "none", "--fail-on-warning"]
    command = [sys.executable, "-m", "openapi_python_client", "generate", *options]
    generate([*command, "--path", str(described), "--output-path", name], folder)

    calls = [file.read_text() for file in (folder / name / "api").rglob("*.py")]
    for path in json.loads(described.read_text())["paths"]:  # it leaves out what it does not know
        assert any(f'"{path}"' in text for text in calls), path

    def made(module: str) -> Any:
        return importlib.import_module(f"{name}.{module}")

    client, now = made("client").Client(base_url=stack.url), int(time.time())
    models, ok = made("models"), 200
    detection = models.DetectionInput("generated-1", MAC, -60, timestamp=now, event_id="g-1")
    batch = models.BatchInput([detection])
    for body, status in ((detection, "stored"), (batch, "duplicate")):
        answer = made("api.detections.post_detections").sync_detailed(client=client, body=body)
        assert answer.status_code == ok, answer
        assert [result.status.value for result in answer.parsed.results] == [status]
    history = made("api.people.staff_detections").sync("generated-1", client=client)
    assert [(detection.mac, detection.timestamp) for detection in history.data] == [(MAC, now)]
    visits = made("api.people.visits").sync(
        client=client, level="4", location="Room 4-01", from_=str(now - 60), to=str(now + 60)
    )
    assert "generated-1" in [visit.staff_id for visit in visits.data]
    file = made("types").File(io.BytesIO(CSV))
    done = made("api.beacons.import_beacons").sync(
        client=client, body=file, dry_run=models.ImportBeaconsDryRun.VALUE_1
    )
    assert (done.added, done.dry_run, done.errors) == (1, True, [])
    feed = partial(made("api.detections.changes").sync, client=client)
    assert "generated-1" in changed_people(feed, from_=str(now - 60))
    wrong = made("api.beacons.beacon").sync("no-mac", client=client)
    assert (wrong.code, wrong.errors[0].field) == ("invalid_request", "mac")
    client.get_httpx_client().close()


def test_openapi_generator(stack: Stack, described: Path, folder: Path) -> None:
    name = "made_by_openapi_generator"
    options = ["--generator-name", "python", "--package-name", name, "--output", str(folder)]
    generate(["openapi-generator-cli", "generate", "-i", str(described), *options], folder)
    made = importlib.import_module(name)
    client, now = made.ApiClient(made.Configuration(host=stack.url)), int(time.time())
    fields = {"mac": MAC, "rssi": -60, "timestamp": now, "event_id": "g-2"}
    detection = made.DetectionInput.from_dict({"staff_id": "generated-2"} | fields)
    detections = made.DetectionsApi(client)
    batch = made.BatchInput(detections=[detection])
    for body, status in ((detection, "stored"), (batch, "duplicate")):
        answer = detections.post_detections(made.PostDetectionsRequest(body))
        assert [result.status for result in answer.results] == [status]
    people = made.PeopleApi(client)
    history = people.staff_detections("generated-2")
    assert [(detection.mac, detection.timestamp) for detection in history.data] == [(MAC, now)]
    visits = people.visits(
        level="4", location="Room 4-01", var_from=str(now - 60), to=str(now + 60)
    )
    assert "generated-2" in [visit.staff_id.actual_instance for visit in visits.data]
    done = made.BeaconsApi(client).import_beacons(CSV, dry_run="1")
    assert (done.added, done.dry_run, done.errors) == (1, True, [])

    # It knows no lines of JSON, but hands out the answer as it came.
    def feed(**query: object) -> str:
        answer = detections.changes_without_preload_content(**query)
        return str(answer.read().decode())

    assert "generated-2" in changed_people(feed, var_from=str(now - 60))
    with pytest.raises(made.ApiException) as refused:
        made.BeaconsApi(client).beacon("no-mac")
    problem = json.loads(refused.value.body)
    assert (problem["code"], problem["errors"][0]["field"]) == ("invalid_request", "mac")
    client.rest_client.pool_manager.clear()
