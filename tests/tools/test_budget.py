"""The command ./scripts/budget: what it reads, what it adds up, and what it says of it."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
import yaml

from scripts.box import budget, first_run, measuring, processes
from scripts.box.load import Load
from scripts.box.measuring import Machine, Measured, Part, engine_cpu
from scripts.box.processes import Process
from scripts.processes import ROOT
from scripts.processes.control_groups import Usage
from scripts.processes.waiting import eventually
from tests.upstream import Upstream

BOX = Machine(cpu=3.0, total=983.0, available=500.0, swap=512.0, swapped=12.0)
OTHER = BOX._replace(total=16000.0, available=9000.0)


def part(cpu: float = 1.0, anonymous: float = 100.0, **more: float | None) -> Part:
    return Part(cpu, anonymous, anonymous + 10, **{"text": 20.0, "limit": 160.0} | more)  # type: ignore[arg-type]


def measured(machine: Machine = BOX, **containers: Part) -> Measured:
    return Measured(60.0, containers, part(0.5, 90.0, limit=None), machine)


def process(name: str, parent: int = 1) -> Process:
    return Process(name, parent, 0.0, 0.0)


def test_what_children_took_counts_once_they_have_ended() -> None:
    spin = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    before = processes.processes()[os.getpid()]
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = processes.processes()[os.getpid()]
    assert after.ended_seconds - before.ended_seconds >= 0.2  # told in ticks of 0.01 s


def test_a_processs_memory_is_read() -> None:
    block = bytearray(os.urandom(1) * (50 << 20))
    memory = processes.memory(os.getpid())
    assert memory.anonymous > 50
    assert memory.text is not None
    assert memory.text > 0
    assert len(block) == 50 << 20
    assert processes.memory(2**22 + 1) == (0.0, None)  # no such process


@pytest.mark.parametrize(
    ("daemon", "first", "expected"),
    [
        (10, [101], {10, 11, 12, 100}),  # it started its own containerd and proxy
        (1, [301], {10, 11, 12, 20, 21, 300}),  # systemd listens for it: all that are called so
        (20, [201], {20, 21, 200}),
        (None, [101], {10, 11, 12, 20, 21, 100}),
    ],
)
def test_the_engine_is_who_runs_the_containers(
    daemon: int | None, first: Sequence[int], expected: set[int]
) -> None:
    every = {1: process("systemd", 0)}
    for at in (10, 20):
        every |= {at: process("dockerd"), at + 1: process("containerd", at)}
        every |= {at * 10: process("containerd-shim"), at * 10 + 1: process("python3", at * 10)}
    every |= {12: process("docker-proxy", 10), 300: process("containerd-shim")}
    every |= {301: process("nginx", 300), 400: process("containerd", 1)}
    assert processes.engine(every, first, daemon) == expected


def test_a_containerd_of_systemd_belongs_to_the_engine() -> None:
    every = {10: process("dockerd"), 11: process("containerd"), 12: process("containerd", 99)}
    every |= {20: process("containerd-shim"), 21: process("mongod", 20)}
    assert processes.engine(every, [21], 1) == {10, 11, 20}


def moment(used: float, alive: float, engine: float) -> measuring._Moment:
    return measuring._Moment({"one": Usage(used, 0, 0, 0, 0, 0)}, {"one": alive}, engine, 0.0)


def test_a_health_check_counts_once_what_it_took_inside_its_container() -> None:
    # 5 s in the container, 4 of them by processes that are still there: 1 s was the checks', and
    # the shim, who waited for them, has it too.
    assert engine_cpu(moment(10, 8, 3), moment(15, 12, 6)) == pytest.approx(2.0)
    assert engine_cpu(moment(10, 10, 3), moment(15, 15.2, 6)) == pytest.approx(3.0)  # rounding


def test_the_sums_are_those_of_all_parts() -> None:
    usage = measured(shard1=part(), shard2=part())
    sums = budget.memory(usage)
    assert usage.cpu == 2.5
    assert sums == (320.0, 220.0, 40.0, 110.0, 983 - 500 - 200 - 90)
    assert sums.held == 220 + 40 + 110 + 193
    assert budget.memory(usage._replace(machine=OTHER)).system == budget.SYSTEM_MIB


def test_within_the_budgets_and_over_each() -> None:
    usage = measured(shard1=part(), shard2=part())
    assert budget.problems(usage, "idle") == []
    assert budget.problems(measured(shard1=part(2.1)), "idle") == [
        "CPU: 2.60 s a minute of 2.5 (idle)"
    ]
    assert budget.problems(measured(shard1=part(2.1)), "people") == []
    (memory,) = budget.problems(measured(OTHER, shard1=part(anonymous=700.0)), None)
    assert memory == "memory: 1012 of 983 MiB"
    (killed,) = budget.problems(measured(shard1=part(killed=2)), None)
    assert killed == "shard1: 2 processes killed for want of memory"


@pytest.mark.parametrize(
    ("needs", "limit"),
    [
        ({"anonymous": 50.0}, None),
        ({"anonymous": 65.0, "text": 20.0}, 128),  # 95 of 96
        ({"anonymous": 65.0, "text": None}, None),  # nobody but root knows the rest
        ({"anonymous": 20.0, "killed": 1}, 128),
        ({"anonymous": 90.0, "limit": None}, None),
        ({"anonymous": 50.0, "peak": 96.0}, None),  # page cache
    ],
)
def test_a_first_run_names_the_limit_to_raise(
    needs: dict[str, float | None], limit: int | None
) -> None:
    usage = measured(configsvr=part(**{"limit": 96.0} | needs))  # type: ignore[arg-type]
    said = first_run.report(usage)
    assert ("No limit has to be raised" in said) == (limit is None)
    assert (f"  configsvr: {{mem_limit: {limit}m}}" in said) == (limit is not None)
    assert re.search(r"configsvr .* 112\.2 \| +256 \|\n", said)


def test_containers_of_one_service_have_one_limit() -> None:
    short = part(anonymous=150.0)
    said = first_run.report(
        measured(BOX, **{"ingest-2": short, "ingest-2 (2)": part(anonymous=190.0)})
    )
    assert said.count("mem_limit") == 1
    assert "  ingest-2: {mem_limit: 288m}" in said
    assert "That is 256 MiB more; this machine has 500 available" in said


def test_the_source_is_known_for_every_container_of_ours() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    watched = {
        name
        for name, service in services.items()
        if "healthcheck" in service and "deploy" not in service
    }
    assert set(first_run.SOURCE) == watched


def test_a_load_that_is_refused_is_within_no_budget() -> None:
    with contextlib.closing(Upstream()) as stack:
        stack.answer(401, b"")
        load = Load(stack.url, "peak")
        with load.running():
            eventually(lambda: load.statuses["detection", 401], 60)
    assert load.problems()[0].startswith("detection: 0 good answers of ")


# Ten minutes of 14 phones, 14 histories and two pages.
GOOD = {("detection", 200): 2090, ("history", 200): 830, ("page", 200): 240}


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        ({}, []),
        ({("detection", 200): 2000, ("detection", 202): 95}, []),
        ({("detection", 503): 100}, []),
        ({("detection", 503): 200}, ["detection: 2090 good answers of 2290"]),
        ({("history", 200): 700}, ["history: 700 good answers of 826"]),  # too few were sent
        ({("page", 200): 0, ("page", 0): 240}, ["page: 0 good answers of 240"]),
    ],
)
def test_few_answers_of_a_load_may_be_lacking(
    changed: dict[tuple[str, int], int], problems: list[str]
) -> None:
    load = Load("http://127.0.0.1:1", "people")
    load._ran_seconds = 600
    load.statuses.update(GOOD | changed)
    assert load.problems() == problems
    assert Load("http://127.0.0.1:1", "idle").problems() == []
