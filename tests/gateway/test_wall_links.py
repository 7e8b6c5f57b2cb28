"""What a link for a wall screen opens, through the real gateway and on the page, and no more."""

from collections.abc import Iterator

import pytest
import requests

from monitoring.page_data import LIFETIME_SECONDS
from monitoring.screens import SCREENS
from scripts.processes.waiting import eventually
from tests.gateway.wall import MACS, OTHERS, ROOMS, SESSION, TEAM, Site, shown, walls

POLL = "/retrieveformonitoring"
REVOKED_SECONDS = 30
# What of the page tells of people or places.
DATA = [f"api/{path.partition('[')[0]}" for path in LIFETIME_SECONDS]
DATA = [path.replace("staff/", "staff/0/detections") for path in DATA] + ["latest", "api/system"]


@pytest.fixture(scope="module")
def site(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with walls(mongod, tmp_path_factory.mktemp("walls")) as walled:
        yield walled


def visitors(site: Site, secret: str) -> list[requests.Session]:
    """Return a browser that has opened the link, and a program that sends its token."""
    program = requests.Session()
    program.trust_env = False
    program.headers["Authorization"] = f"Bearer {secret}"
    url = f"{site.gateway.url}{SESSION}"

    def known() -> bool:  # to both services: the one that did not make it has 10 s
        return {program.get(url, timeout=30).status_code for _ in range(6)} == {200}

    eventually(known, 30, pause_seconds=1)  # refused too often, one has to wait
    return [shown(site.gateway, secret), program]


@pytest.mark.long
def test_one_level_is_all_that_its_link_opens(site: Site) -> None:
    asked = 0
    for visitor in visitors(site, site.made(level="4")["secret"]):
        # What everybody gets is in the gateway's cache by now.
        poll = site.anna.get(f"{site.gateway.url}{POLL}", timeout=30)
        assert ROOMS["5"] in poll.text
        opened = set()
        for method, path in site.operations():
            if f"{method} {path}" == "DELETE /api/v1/session":
                continue  # its own
            for query in ("", "?level=4", "?level=5", "?everything=0"):
                url = f"{site.gateway.url}{path}{query}"
                answer = visitor.request(method, url, timeout=30)
                asked += 1
                assert ROOMS["5"] not in answer.text, url
                assert MACS["5"] not in answer.text, url
                if answer.status_code not in (401, 403):  # 401: phones are asked for no cookie
                    opened.add((f"{method} {path}{query}", answer.status_code))
        session = {(f"GET {SESSION}{q}", 200) for q in ("", "?everything=0")}
        session |= {(f"GET {SESSION}{q}", 400) for q in ("?level=4", "?level=5")}  # it has none
        level = {
            (f"GET /api/v1/{path}?level=4", 200) for path in ("now", "staff", "beacons", "people")
        }
        assert opened == session | level
    assert asked > 200


@pytest.mark.long
def test_the_page_of_one_level_shows_that_and_nothing_else(site: Site) -> None:
    base = f"{site.gateway.url}/monitoring"
    for visitor in visitors(site, site.made(level="4")["secret"]):
        for path in ("", "?level=4", "?level=5"):
            page = visitor.get(base + path, timeout=30)
            assert page.status_code == 200
            assert 'data-level="4"' in page.text
            assert "/monitoring/directory" not in page.text
            assert 'id="wall"' not in page.text
        for screen in SCREENS:
            status = visitor.get(f"{base}/{screen}", timeout=30).status_code
            assert (status == 200) == (screen == "live"), screen
        opened = set()
        for path in DATA:
            for query in ("", "?level=4", "?level=5", "?level=", "?limit=1"):
                answer = visitor.get(f"{base}/{path}{query}", timeout=30)
                assert ROOMS["5"] not in answer.text, path
                assert MACS["5"] not in answer.text, path
                if answer.status_code == 200:
                    opened.add(path)
                    assert ROOMS["4"] in answer.text
                else:
                    assert answer.status_code == 403, (path, query)
                    assert answer.json()["error"] == ("this link or token shows level 4 alone")
        assert opened == {"api/staff", "api/people", "api/beacons", "latest"}
    # Whoever looks at all of it gets all of it, before and after.
    assert ROOMS["5"] in site.anna.get(f"{base}/latest", timeout=30).text
    assert 'id="wall"' in site.anna.get(base, timeout=30).text


@pytest.mark.long
def test_one_team_is_all_that_its_link_opens(site: Site) -> None:
    base = f"{site.gateway.url}/monitoring"
    for visitor in visitors(site, site.made(team=TEAM)["secret"]):
        site.anna.get(f"{site.gateway.url}{POLL}", timeout=30)  # it is in the gateway's cache
        for method, path in site.operations():
            if f"{method} {path}" == "DELETE /api/v1/session":
                continue
            for query in ("", f"?team={TEAM}", f"?team={OTHERS}", "?everything=0"):
                answer = visitor.request(method, f"{site.gateway.url}{path}{query}", timeout=30)
                assert OTHERS not in answer.text, path
                assert '"staff_id":3' not in answer.text, path
        for path in ("/extractbeacon?staff_id=3&start_time=0&end_time=9999999999", POLL):
            assert visitor.get(f"{site.gateway.url}{path}", timeout=30).status_code in (401, 403)
        assert f'data-team="{TEAM}"' in visitor.get(base, timeout=30).text
        told = {}
        for path in DATA:
            for query in ("", f"?team={TEAM}", f"?team={OTHERS}", "?level=4", "?team=", "?limit=9"):
                answer = visitor.get(f"{base}/{path}{query}", timeout=30)
                assert OTHERS not in answer.text, path
                assert '"staff_id":3' not in answer.text, path
                if answer.status_code == 200:
                    told[path] = answer.text
                else:
                    assert (
                        answer.json()["error"] == f"this link or token shows the team {TEAM} alone"
                    )
        assert told.keys() == {"api/staff", "api/people", "api/beacons", "latest"}
        assert '"staff_id":1,' in told["latest"]
    assert '"staff_id":3' in site.anna.get(f"{base}/latest", timeout=30).text
