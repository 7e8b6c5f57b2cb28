"""What the idle stack and its engine take of the machine, by ./scripts/budget.

Where MongoDB is emulated its figures are the emulator's, so only ours and the engine's are held to
something; test_box.py holds the whole box with native servers.
"""

import re

from scripts.box.budget import BUDGETS
from scripts.processes import ROOT
from tests.docker.conftest import MONGO, OURS, Stack, budget, budget_rows

SECONDS = 60
MONGO_CPU = 0.9  # s a minute: what idle mongods and routers take natively, at the least
CHECK_SECONDS = 0.07  # of a health check, in the engine and inside
INSIDE_SECONDS = 0.03  # of it, inside
# A minute, with the checks that ship: twice what box_report.txt has, for so much slower was another
# hour of the same machine, with an older release too.
OURS_SECONDS = 0.9


def test_the_idle_stack_and_its_engine_are_within_the_budget(stack: Stack) -> None:
    done = budget(stack, "--load", "idle", "--seconds", str(SECONDS))
    assert done.returncode in (0, 1), done.stderr
    table = budget_rows(done.stdout)
    assert set(table) == OURS | MONGO | {"engine"}
    cpu = {name: float(cells[-1]) for name, cells in table.items()}
    assert all(cpu.values()), cpu
    emulated = MONGO if stack.images.emulated else set()
    allowed = BUDGETS["idle"] - (MONGO_CPU if emulated else 0)
    allowed += CHECK_SECONDS * _more_checks(stack, OURS | MONGO)
    assert sum(cpu[name] for name in table.keys() - emulated) <= allowed, done.stdout
    ours = OURS_SECONDS + INSIDE_SECONDS * _more_checks(stack, OURS)
    assert sum(cpu[name] for name in OURS) <= ours, done.stdout
    for name in OURS:
        limit, now, _, anonymous = map(float, table[name][:4])
        assert 0 < anonymous <= now <= limit, name
    assert float(table["engine"][3]) > 0


def _more_checks(stack: Stack, parts: set[str]) -> float:
    """Return how many health checks of these a minute the tests ask for beyond what ships."""
    text = (ROOT / "docker-compose.yml").read_text()
    everybody, configsvr = map(int, re.findall(r"interval: \D*(\d+)s", text))
    containers = stack.containers()
    intervals: dict[str, float]
    intervals = {
        name: containers[name]["Config"]["Healthcheck"]["Interval"] / 1e9 for name in parts
    }
    shipped = dict.fromkeys(parts, everybody) | {"configsvr": configsvr}
    return sum(60 / seconds - 60 / shipped[name] for name, seconds in intervals.items())
