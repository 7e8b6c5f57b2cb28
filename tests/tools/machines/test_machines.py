"""Both commands of the README on new machines, as root and as a user with sudo.

It needs root, debootstrap's archives and a quarter of an hour; the last report is report.txt here.
WAYMARK_MACHINES=noble,root names some alone; WAYMARK_MACHINES_TESTS are the arguments of
./scripts/test: "" is the whole quick suite; "none" leaves it out.
"""

import os
import re
import time
from pathlib import Path

import pytest

from tests.tools.machines.machine import USER, Machine

pytestmark = pytest.mark.named
RELEASES = ("bookworm", "trixie", "noble")
USERS = {"root": "/opt/waymark", USER: f"/home/{USER}/waymark"}
ONLY = os.environ.get("WAYMARK_MACHINES", "").split(",")
TESTS = os.environ.get(
    "WAYMARK_MACHINES_TESTS",
    "tests/stack/test_contract.py tests/stack/test_clock.py tests/stack/test_setup.py "
    "tests/page/test_live.py tests/services/ingest/test_driver.py tests/mongo/test_emulated.py",
)
REPORT = Path(__file__).with_name("report.txt")
DETECT_AND_READ = """
import json, urllib.request as web
url = "http://127.0.0.1:8080/"
ask = "newbeacondetect?user_address=7&beacon_address=C2A628384B08&rssi=-20"
print(web.urlopen(url + ask).status, web.urlopen(url + ask).read().decode())
read = "extractbeacon?staff_id=7&start_time=0&end_time=4102444800"
print(len(json.load(web.urlopen(url + read))["location"]))
"""
# Beside the checkout: what packages bring and note, the user that root gives the stack to, caches.
ALLOWED = re.compile(
    r"/(opt/waymark|home/walker/waymark)/|/(usr|lib|bin|sbin|etc|var/(lib|cache|log|backups|www/html))/"
    r"|/tmp/pytest-of-|/(root|home/walker)/\.(cache|npm|local|config|node)"
)


def report(machine: str, said: list[str]) -> None:
    """Put the machine's line into the report, in place of its last."""
    line = f"{machine}: {time.strftime('%Y-%m-%d')}; {'; '.join(said)}"
    lines = REPORT.read_text().splitlines() if REPORT.exists() else []
    others = [line for line in lines if not line.startswith(f"{machine}:")]
    REPORT.write_text("\n".join(sorted([*others, line])) + "\n")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("release", RELEASES)
def test_both_commands_work_on_a_new_machine(release: str, user: str, tmp_path: Path) -> None:
    if ONLY != [""] and not {release, user} >= set(ONLY):
        pytest.skip("others were named")
    number = 10 * RELEASES.index(release) + list(USERS).index(user) + 100
    with Machine(release, number, tmp_path) as machine:
        folder = USERS[user]
        machine.check_out(folder, user)
        before = machine.files()
        said = []

        def run(command: str, timeout: float = 900) -> str:
            began = time.monotonic()
            done = machine.run(f"cd {folder} && {command}", user, timeout)
            said.append(f"{command.split(' -')[0]} {time.monotonic() - began:.0f} s")
            return done.stdout

        up = run("./scripts/up --detach")
        assert "WARNING" not in up
        asked = run(f".venv/bin/python -c '{DETECT_AND_READ}'")
        assert asked == "200 New Beacon Detection Added\n2\n"
        run("./scripts/status")
        assert run("./scripts/down") == "stopped\n"
        nothing_is_left(machine, folder, before)
        again = run("./scripts/up --detach")
        assert "installing" not in again
        assert run("./scripts/down") == "stopped\n"
        if TESTS != "none":
            suite = run(f"./scripts/test {TESTS}", timeout=3600).splitlines()
            said += [line for line in suite if line.startswith("SKIPPED") or " passed" in line]
            nothing_is_left(machine, folder, before)
        report(f"{release} as {user}", said)


def nothing_is_left(machine: Machine, folder: str, before: set[str]) -> None:
    """No process, no policy, no file but the checkout's and those of packages."""
    assert machine.processes() == []
    assert machine.run("ls /usr/sbin/policy-rc.d", check=False).returncode
    strange = machine.files() - before
    assert sorted(path for path in strange if not ALLOWED.match(path)) == []
    kept = machine.run(f"cd {folder} && find data -name 'setup.*.log'").stdout
    assert kept == ""
