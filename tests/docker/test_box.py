"""The whole box with native MongoDB: engine and containers in one control group, under each load.

Everything runs in the memory that the box leaves to it, and `./scripts/budget` gives the verdict.
box_report.txt has its last report, and what stood in for what.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from scripts.box.budget import BOX_MIB, BUDGETS, SYSTEM_MIB
from scripts.processes.control_groups import UNLIMITED, Limits, LimitsUnavailableError
from scripts.processes.limited_group import LimitedGroup
from scripts.processes.waiting import eventually
from tests.docker.conftest import Stack, budget
from tests.docker.engine import Docker, engine
from tests.docker.images import Images, images, native_mongo

pytestmark = pytest.mark.named

HERE = Path(__file__).parent
REPORT = HERE / "box_report.txt"
SECONDS = int(os.environ.get("WAYMARK_BOX_SECONDS", "120"))
SETTLE_SECONDS = 30
LEFT_MIB = BOX_MIB - SYSTEM_MIB
INTRODUCTION = f"""The whole box

./scripts/test --compose tests/docker/test_box.py, {datetime.now(UTC).date()}. All containers and
the engine are in one control group of {LEFT_MIB} MiB: {BOX_MIB} less {SYSTEM_MIB} for the system.
Each load for {SECONDS} s, one after the other. The clients run on the same machine, outside of the
group.

What is not the real thing: MongoDB is 6.0.5, not 7.0. Both services speak to shard1 itself,
shard2 and configsvr are idle sets of their own. The routers are stand-ins of 32 MiB that take
0.27 CPU seconds a minute each, whatever the load. A real cluster takes more when it is idle:
docs/measurements.md, "The whole box".
"""


@pytest.fixture(scope="module")
def box() -> Iterator[tuple[Stack, LimitedGroup]]:
    """Return the running stack, and the group that it and its engine are in."""
    try:
        group = LimitedGroup("box", Limits(None, LEFT_MIB * 2**20))
    except LimitsUnavailableError as error:
        pytest.skip(str(error))
    with group:
        try:
            # The containers' groups are beside the engine's: processes beside groups v2 forbids.
            with (
                LimitedGroup("engine", UNLIMITED, inside=group) as own,
                engine(own.command) as docker,
            ):
                if not own.pids():
                    pytest.skip("an engine runs here already, which is in no group of ours")
                yield from _stack(docker, group)
        finally:  # the engine made it under the other controllers as well
            for folder in Path("/sys/fs/cgroup").glob(f"*/{group.name}"):
                with suppress(FileNotFoundError):  # two controllers may be one folder
                    folder.rmdir()


def _stack(docker: Docker, group: LimitedGroup) -> Iterator[tuple[Stack, LimitedGroup]]:
    made = images(docker)
    stack = Stack(docker, Images(made.base, native_mongo(docker, made.base), emulated=False))
    stack.docker.environment["BOX_GROUP"] = f"/{group.name}"
    stack.docker.environment.pop("WAYMARK_HEALTH_INTERVAL", None)  # as seldom as for everybody
    stack.compose("build")
    with stack.also(HERE / "native.yml"):
        stack.compose("down", "--volumes", "--remove-orphans")  # of a run that was killed
        try:
            stack.compose("up", "--detach")
            eventually(lambda: _stores(stack), 300, pause_seconds=1)
            REPORT.write_text(INTRODUCTION)
            yield stack, group
        finally:
            stack.compose("down", "--volumes", "--remove-orphans")


def _stores(stack: Stack) -> bool:
    try:
        return stack.detect(0).status_code == 200
    except requests.ConnectionError:
        return False


@pytest.mark.parametrize("load", BUDGETS)
def test_the_box_holds_a_load_within_its_budgets(
    box: tuple[Stack, LimitedGroup], load: str
) -> None:
    stack, group = box
    # As a phone elsewhere does: by the kernel. What this machine itself sends to a published port
    # goes through docker-proxy, at 0.7 ms of CPU a connection.
    (network,) = stack.containers()["gateway"]["NetworkSettings"]["Networks"].values()
    gateway = f"http://{network['IPAddress']}:8080"
    time.sleep(SETTLE_SECONDS)  # a start is no load of the budgets
    done = budget(stack, "--load", load, "--drive", gateway, "--seconds", str(SECONDS))
    used = group.usage()
    peak = f"{used.peak_bytes / 2**20:.0f} of {LEFT_MIB} MiB, page cache included"
    with REPORT.open("a") as report:
        report.write(f"\n{load}\n\n{done.stdout}The group at its peak: {peak}\n")
    assert used.killed == 0
    assert done.returncode == 0, done.stdout + done.stderr
