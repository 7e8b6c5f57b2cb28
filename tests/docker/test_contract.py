"""The stack that came up is whole: what comes in at the published port is stored, once."""

import json
import re
import shlex
from pathlib import Path

import requests

from common.schema import COLLECTIONS
from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.docker.conftest import EARLY, Stack
from tests.stack.test_contract import test_the_readmes_first_detection

README = ROOT / "README.md"
FIRST = 1_700_000_000
SHARDED = """
from pathlib import Path
from mongo.clients import as_administrator
from mongo.secrets import Secrets
with as_administrator("mongos-1:27017", Secrets.read(Path("/secrets"))) as client:
    collections = client["config"]["collections"].find({"_id": {"$regex": "^ICT3102"}})
    print(*sorted(row["_id"].partition(".")[2] for row in collections))
"""
__all__ = ["test_the_readmes_first_detection"]


def test_everything_came_up_healthy(stack: Stack) -> None:
    assert stack.unhealthy() == {}
    restarts = {name: container["RestartCount"] for name, container in stack.containers().items()}
    del restarts["mongo-init"]  # on a slow machine it tries again
    assert set(restarts.values()) == {0}


def test_what_came_before_the_database_is_stored_where_it_belongs(stack: Stack) -> None:
    eventually(lambda: stack.history(EARLY), 60)
    # Who stores before the collections are sharded would make them on one shard.
    run = ["run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "python3", "mongo-init"]
    sharded = sorted(collection.name for collection in COLLECTIONS if collection.shard_key)
    assert stack.compose(*run, "-c", SHARDED).splitlines()[-1].split() == sharded


def test_a_repeated_event_is_stored_once(stack: Stack) -> None:
    for _ in range(3):
        answer = stack.detect("once", event_id="e-1", timestamp=FIRST)
        assert answer.status_code in (200, 202)  # 202: the database was slow
        assert answer.text == "New Beacon Detection Added"
    eventually(lambda: [row["timestamp"] for row in stack.history("once")] == [FIRST], 60)


def test_the_page_answers(stack: Stack) -> None:
    page = stack.get("/monitoring")
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert stack.get("/monitoring/latest").json()["now"] > 0


def test_the_page_knows_both_services(stack: Stack) -> None:
    def known() -> dict[str, bool]:
        services = stack.get("/monitoring/api/system").json()["services"]
        return {service["name"]: service["answers"] for service in services}

    eventually(lambda: known() == {"ingest-1": True, "ingest-2": True}, 60)


def test_on_this_machine_only_the_gateway_warns_of_nothing(stack: Stack) -> None:
    assert "WARNING" not in stack.compose("logs", "gateway")


def test_one_ingest_service_is_enough(stack: Stack) -> None:
    stack.compose("stop", "ingest-2")
    try:
        statuses = {stack.detect("one", timestamp=FIRST + n).status_code for n in range(40)}
    finally:
        stack.compose("start", "ingest-2")
    assert statuses <= {200, 202}
    eventually(lambda: len(stack.history("one")) == 40, 60)


def test_an_own_directory_of_beacons_is_loaded_as_the_readme_says(
    stack: Stack, tmp_path: Path
) -> None:
    beacons = tmp_path / "my-beacons.csv"
    beacons.write_text("mac,level,location,x,y\nAA0000000001,9,Roof,,\n")
    beacons.chmod(0o644)
    tmp_path.chmod(0o755)
    command = re.search(r"docker compose (run .*?)\n```", README.read_text(), re.DOTALL)
    assert command
    words = shlex.split(command[1].replace("$PWD", str(tmp_path)).replace("\\\n", " "))
    assert "1 added" in stack.compose(*words[:1], "--no-TTY", *words[1:])


def test_the_images_know_time_zones(stack: Stack) -> None:
    assert stack.detect("zones", timestamp=FIRST).status_code in (200, 202)
    download = stack.read("/api/v1/staff/zones/detections?format=csv&zone=Asia/Singapore")
    assert "2023-11-15T06:13:20+08:00" in download.text


LOG = "/run/waymark/log/requests.log"  # as docs/logs.md says


def test_one_command_adds_ingest_services_and_the_gateway_finds_them(stack: Stack) -> None:
    def asked() -> set[str]:
        """Return the services that the gateway asked for the last detections."""
        for _ in range(12):
            try:
                answer = stack.detect("many")
            except requests.ConnectionError:  # kept, and closed as the gateway reads its settings
                return set()
            assert answer.status_code in (200, 202), answer.text  # 202: it has just started
        newest = ("exec", "--no-TTY", "gateway", "tail", "-n", "12", LOG)
        return {json.loads(line)["upstream"] for line in stack.compose(*newest).splitlines()}

    scale = ["up", "--detach", "--no-recreate", "--no-build", "--scale"]

    def both() -> set[str]:
        """Return them when they are two: one that was late once is left out for a moment."""
        services = asked()
        return services if len(services) == 2 else set()

    before = eventually(both, 120)
    try:
        stack.compose(*scale, "ingest-2=3")
        eventually(lambda: len(asked()) == 4, 120)
    finally:
        stack.compose(*scale, "ingest-2=1")
    eventually(lambda: asked() == before, 120)
