"""System: is it healthy?"""

import json
import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Office, Opener
from tests.page.house import answer

MIB = 1024 * 1024


def service(name: str, used: int, limit: int | None) -> dict[str, Any]:
    """Return what the health monitor reports of a service whose memory is used so far, in MiB."""
    now = time.time()
    memory = {"used_bytes": used * MIB, "limit_bytes": limit and limit * MIB}
    return {
        "name": name,
        "answers": True,
        "since": now - 60,
        "seen_at": now,
        "latency_ms": 1.5,
        "queued": 0,
        "set_aside": 3 if name == "free" else 0,
        "warnings": [],
        "memory": memory,
        "mongodb": {"reachable": True, "latency_ms": 0.7},
    }


def reported(services: list[dict[str, Any]]) -> Callable[[Page], None]:
    """Return what puts a report on some services into the screen, as `prepare` of it."""
    now = time.time()
    verdict = {"what": "3 set aside in the spool", "rest": "Somebody has to look.", "kept": ""}
    report = {
        "now": now,
        "verdict": verdict | {"since": now - 60},
        "circuits": {
            name: {"state": "closed", "since": now - 60, "detail": ""}
            for name in ("ingest", "reads")
        },
        "services": services,
        "warnings": [],
        "monitoring": {"memory": {"used_bytes": 24 * MIB, "limit_bytes": 48 * MIB}},
        "reads": [{"timestamp": now - 30, "latency_ms": 2.5}],
    }
    return lambda page: answer(page, "**/monitoring/api/system", lambda: report)


@pytest.fixture
def limited(opened: Opener) -> Page:
    """Return the screen with limits of memory, which a native stack does not have."""
    services = [service("ingest-1", 16, 64), service("ingest-2", 60, 64), service("free", 30, None)]
    return opened("/system", prepare=reported(services))


def test_without_the_database_nothing_is_said_to_be_read(opened: Opener) -> None:
    away = {"mongodb": {"reachable": False}}
    services = [service(name, 16, 64) | away for name in ("ingest-1", "ingest-2")]
    page = opened("/system", prepare=reported(services))
    says = ["Detections come in, and wait for the database", "Nothing new can be read"]
    expect(page.locator("#board .big strong")).to_have_text(says)
    expect(page.locator("#reads-circuit")).to_have_attribute("data-state", "open")
    assert Axe().run(page).response["violations"] == []


@pytest.mark.parametrize(
    ("name", "text", "share"),
    [
        ("ingest-1", "16 MiB of 64 MiB", 0.25),
        ("ingest-2", "60 MiB of 64 MiB", 0.9375),
        ("monitoring", "24 MiB of 48 MiB", 0.5),
    ],
)
def test_a_meter_shows_how_much_of_the_memory_is_used(
    limited: Page, name: str, text: str, share: float
) -> None:
    row = limited.locator("#services tr", has_text=name)
    expect(row).to_contain_text(text)
    meter = row.locator(".meter").bounding_box()
    bar = row.locator(".meter span").bounding_box()
    assert meter
    assert bar
    assert bar["width"] / meter["width"] == pytest.approx(share, abs=0.01)


def test_a_nearly_full_memory_stands_out_and_without_a_limit_there_is_no_meter(
    limited: Page,
) -> None:
    expect(limited.locator("#services .meter.full")).to_have_count(1)
    free = limited.locator("#services tr", has_text="free")
    expect(free).to_contain_text("30 MiB, no limit")
    expect(free.locator(".meter")).to_be_hidden()


def test_what_was_set_aside_is_told_with_what_to_do(limited: Page) -> None:
    expect(limited.locator("#set-aside")).to_contain_text("3 in the spool of free")
    expect(limited.locator("#set-aside")).to_contain_text("It is not stored")
    expect(limited.locator("#summary")).to_have_text(
        re.compile(r"^3 set aside in the spool since \d\d:\d\d:\d\d\. Somebody has to look\.$")
    )


def test_what_an_operator_has_to_see_to_is_said_once(opened: Opener) -> None:
    warnings = [{"what": "The spool is full", "todo": "Make room."}]
    services = [service(f"ingest-{number}", 16, 64) | {"warnings": warnings} for number in (1, 2)]
    page = opened("/system", prepare=reported(services))
    expect(page.locator("#warnings p")).to_have_text(["The spool is full. Make room."])
    assert Axe().run(page).response["violations"] == []


def test_what_owntracks_sent_is_counted_where_it_is_on(opened: Opener) -> None:
    counts: list[dict[str, Any] | None] = [
        {"stored": 1200, "ignored": {"location": 7, "no staff id": 2}},
        {"stored": 34, "ignored": {"no staff id": 30}},
        None,
    ]
    services = [
        service(f"ingest-{number}", 16, 64) | {"owntracks": owntracks}
        for number, owntracks in enumerate(counts)
    ]
    page = opened("/system", prepare=reported(services))
    rows = ["stored1,234", "ignored: no staff id32", "ignored: location7"]
    expect(page.locator("#owntracks-counts tbody tr")).to_have_text(rows)
    assert Axe().run(page).response["violations"] == []


def test_where_owntracks_is_off_nothing_is_said_of_it(limited: Page) -> None:
    expect(limited.locator("#services tr")).not_to_have_count(0)
    expect(limited.locator("#owntracks")).to_be_hidden()


def test_it_leads_programmers_to_their_first_detection(opened: Opener, office: Office) -> None:
    page = opened("/system")
    page.get_by_role("link", name="the API").click()
    expect(page).to_have_url(f"{office.url}/docs")
    expect(page.locator("h2").first).to_have_text("Send your first detection")
    send, read = page.locator("#start ~ pre").all_text_contents()[:2]
    assert f"curl '{office.url}/" in send

    def run(command: str) -> dict[str, Any]:
        printed = subprocess.check_output(["bash", "-c", f"{command} --silent --noproxy '*'"])
        answer: dict[str, Any] = json.loads(printed)
        return answer

    sent = run(send)
    assert sent["counts"]["stored"] + sent["counts"]["duplicate"] == 1
    everybody, history = map(run, read.splitlines())
    assert len(everybody["data"]) >= 14
    assert history["data"]


def test_a_plot_tells_its_first_and_its_last_minute_apart(opened: Opener) -> None:
    page = opened("/system")
    ends = page.locator(".chart .ends").first
    expect(ends.locator("span")).to_have_count(2)
    whole, *parts = [part.bounding_box() for part in (ends, *ends.locator("span").all())]
    assert whole is not None
    first, last = (part or whole for part in parts)
    assert last["x"] > first["x"] + first["width"] + whole["width"] / 4
