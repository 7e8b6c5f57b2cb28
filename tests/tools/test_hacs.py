"""The mock HACS against a real service: it prints what is new, once, and goes on where it was."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.service import Service, running
from tests.upstream import Upstream


@pytest.fixture
def service(mongod: str, tmp_path: Path) -> Iterator[Service]:
    with running(Service(mongod, tmp_path)) as (service,):
        yield service


class Hacs:
    """Starts the mock HACS for some pulls, always with the same file."""

    def __init__(self, url: str, state: Path, *arguments: str) -> None:
        self._command = [f"{ROOT}/scripts/hacs", url, "--state", str(state), *arguments]
        self.said = ""

    def pull(self) -> list[dict[str, object]]:
        """Pull once, and again while the service has no time; return the new lines."""
        command, rows = [*self._command, "--pulls", "1"], []
        for _ in range(10):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stderr
            self.said = done.stderr
            rows += [json.loads(line) for line in done.stdout.splitlines()]
            if "HTTP Error 503" not in self.said:
                break
        return rows


def test_histories_tell_what_is_new_also_what_came_late(service: Service, tmp_path: Path) -> None:
    now, one, other = int(time.time()), "hacs-1", "hacs-2"
    hacs = Hacs(service.url, tmp_path / "hacs.json", "--staff", f"{one},{other}")
    service.detect(one, timestamp=now - 10)
    service.detect("nobody-asks", timestamp=now)
    assert [line["timestamp"] for line in hacs.pull()] == [now - 10]
    assert hacs.pull() == []
    service.detect(one, timestamp=now - 3600)  # of a dead zone
    service.detect(one, timestamp=now)
    service.detect(one, timestamp=now)  # twice in a second
    service.detect(other, timestamp=now - 5)
    rows = hacs.pull()
    assert [(line["staff_id"], line["timestamp"]) for line in rows] == [
        *((one, at) for at in (now - 3600, now, now)),
        (other, now - 5),
    ]
    assert {line["location"] for line in rows} == {rows[0]["location"]}
    assert hacs.pull() == []


def test_the_change_feed_tells_everybody_once(service: Service, tmp_path: Path) -> None:
    hacs = Hacs(service.url, tmp_path / "hacs.json", "--changes")
    assert hacs.pull() == []  # it begins now
    for number in range(3):
        service.detect(f"feed-{number}")
    staff_ids: list[object] = []

    def all_came() -> bool:  # once a majority has them
        staff_ids.extend(line["staff_id"] for line in hacs.pull())
        return len(staff_ids) >= 3

    eventually(all_came)
    assert staff_ids == ["feed-0", "feed-1", "feed-2"]
    assert hacs.pull() == []


def test_a_cursor_that_is_too_old_is_told_and_the_feed_begins_again(
    upstream: Upstream, tmp_path: Path
) -> None:
    state = tmp_path / "hacs.json"
    state.write_text(json.dumps({"url": upstream.url, "cursor": "old"}))
    hacs = Hacs(upstream.url, state, "--changes", "--pulls", "1")
    upstream.answer(410, b"{}")
    command = subprocess.Popen(hacs._command, stderr=subprocess.PIPE, text=True)
    with command as process:
        assert process.stderr
        assert "Fill the gap" in process.stderr.readline()
        process.terminate()
    assert any("after=old" in path for _, path, *_ in upstream.requests)


@pytest.mark.parametrize(
    "body", [b'{"detection": {}}\n', b"", b"<html>", b'{"next": "a"', b"null\n", b"[]\n"]
)
def test_half_an_answer_moves_no_cursor(upstream: Upstream, tmp_path: Path, body: bytes) -> None:
    state = tmp_path / "hacs.json"
    state.write_text(json.dumps({"url": upstream.url, "cursor": "kept"}))
    upstream.answer(200, body)
    hacs = Hacs(upstream.url, state, "--changes")
    assert hacs.pull() == []
    assert hacs.said.startswith(f"hacs: {upstream.url}: ")
    assert json.loads(state.read_text())["cursor"] == "kept"
