"""That the command for headroom finds what is wrong: each thing that it looks for is made once."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from common.schema import DATABASE
from loadtests.engine.client import Response
from loadtests.headroom import results, watch
from loadtests.headroom.answers import Answers, Rule
from loadtests.headroom.cases import Case
from loadtests.headroom.command import WARM_UP_SHARE, run
from loadtests.headroom.ledger import Ledger, Stored
from loadtests.headroom.results import Result
from loadtests.headroom.site import HONEST, Site
from loadtests.headroom.stack import LIMITS, MIB, LimitedStack
from loadtests.headroom.watch import Part, Watch
from scripts.processes import ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import LimitedGroup
from scripts.processes.waiting import eventually
from tests.limited_stack import limited_stack
from tests.needs import limited

GOOD = Part(64, rest=40, peak=57, growth=1, kernel_peak=64, killed=0, ended=0)
# The kernel ends it rather than another process of its group.
FIRST = "open('/proc/self/oom_score_adj', 'w').write('1000')"
HOG = [sys.executable, "-c", f"{FIRST}; bytearray(100 << 20)"]


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (GOOD, ""),  # that the cached pages of files fill the limit is no fault
        (GOOD._replace(peak=57.7), "gateway at 57.7 of 64 MiB"),
        (GOOD._replace(growth=2.1), "gateway grew by 2.1 MiB"),
        (GOOD._replace(killed=2, ended=1), "gateway killed 2 times"),
        (GOOD._replace(ended=1), "gateway: 1 processes ended"),
    ],
)
def test_a_part_is_good_or_not(part: Part, problem: str) -> None:
    assert "".join(results.part_problems({"gateway": part})) == problem


@pytest.mark.parametrize(
    ("held", "grown"),
    [
        ([1.0] * 5, 0),  # too few to tell
        ([50.0] * 30, 0),
        ([50.0, 60.0] * 15, 0),  # comes and goes
        ([float(n) for n in range(30)], 20),
        ([*[50.0] * 29, 90.0], 0),  # a peak at the end is no growth
    ],
)
def test_growth_is_from_the_first_third_to_the_last(held: list[float], grown: float) -> None:
    assert watch.growth(held) == grown


@pytest.mark.parametrize(
    ("status", "state", "ms", "problem"),
    [
        (200, "", 1_000, ""),
        (200, "", 2_500, "insert: 2.5 s, not 2"),
        (503, "busy", 1, ""),
        (503, "open", 1, "insert: 1 x 503 open of 1"),
        (503, "", 1, "insert: 1 x 503 of 1"),
        (0, "", 1, "insert: 1 x none of 1"),
    ],
)
def test_an_answer_is_as_a_rule_wants_it(status: int, state: str, ms: float, problem: str) -> None:
    answers = Answers()
    answers.add("insert", Response(status, b"", ms, {"x-circuit-state": state} if state else {}))
    rule = Rule("insert", ("200", "503 busy"), seconds=2)
    assert "".join(answers.problems((rule,))) == problem


def test_a_wrong_answer_and_one_that_nobody_asked_for_are_told() -> None:
    answers = Answers()
    answers.add("page", Response(200, b"", 1), wrong=True)
    problems = list(answers.problems((Rule("page"), Rule("history"))))
    assert problems == ["page: 1 x wrong of 1", "history: nothing was asked"]


def test_what_is_in_any_run_is_in_the_verdict() -> None:
    good = Result({"gateway": GOOD}, Stored(5, 0, 0, 0), "", {}, 1, ())
    bad = good._replace(
        parts={"gateway": GOOD._replace(peak=60, killed=1)},
        stored=Stored(5, 1, 2, 0),
        problems=("gateway killed 1 times",),
    )
    assert results.cells("case", [good])[1:] == ["0", "57.0", "1.0", "", "5", "good"]
    assert results.cells("case", [good, bad])[1:] == [
        "1",
        "58.5 (57.0 to 60.0)",
        "1.0",
        "",
        "10, 1 lost, 2 doubled",
        "gateway killed 1 times",
    ]


def test_the_limits_are_those_of_the_stack() -> None:
    services = (ROOT / "docker-compose.yml").read_text().split("\nx-")
    ingest = next(text for text in services if text.startswith("ingest:"))
    limits = dict(
        re.findall(r"^  ([\w-]+):\n(?:    .*\n)*?    mem_limit: (\d+)m", services[-1], re.M)
    )
    limits |= dict.fromkeys(("ingest-1", "ingest-2"), re.findall(r"mem_limit: (\d+)m", ingest)[0])
    for name, limit in LIMITS.items():
        assert limit.memory_bytes == int(limits[name]) * MIB, name


def test_detections_tell_each_other_apart() -> None:
    ledger = Ledger()
    every = [*(ledger.now() for _ in range(5_000)), *ledger.backlog(1_000)]
    assert len({(row["staff_id"], row["timestamp"], row["rssi"]) for row in every}) == len(every)


def test_what_is_lost_doubled_or_unknown_is_counted(
    mongod: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadtests.headroom.ledger.DRAIN_SECONDS", 0.1)
    ledger = Ledger()
    sent = ledger.backlog(5)
    ledger.acknowledge(sent[:3])
    stored = [
        {name: detection[name] for name in ("staff_id", "timestamp", "rssi")} for detection in sent
    ]
    stranger = stored[0] | {"timestamp": 1}
    with MongoClient[dict[str, Any]](mongod) as client:
        staff = client[DATABASE]["staff"]
        staff.insert_many([stored[1], stored[1] | {}, stored[2], stored[3], stranger])
        assert ledger.compare(mongod) == Stored(acknowledged=3, lost=1, doubled=1, strangers=1)
        ledger.forget(mongod)
        assert staff.count_documents({"staff_id": sent[0]["staff_id"]}) == 0


@limited
def test_a_kill_is_found() -> None:
    limits = {"hog": Limits(None, 40 * MIB)}
    with LimitedGroup("hog", limits["hog"]) as group:
        with Watch({"hog": group}, limits) as seen:
            subprocess.run(group.command(HOG), check=False)
        assert seen.parts()["hog"].killed == 1
        with Watch({"hog": group}, limits) as seen:
            pass
        assert seen.parts()["hog"].killed == 0  # one case's is not the next one's


@limited
def test_what_is_held_is_seen_and_the_cached_pages_of_a_file_are_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(30 * MIB))
    script = f"open({str(tmp_path / 'file')!r}, 'rb').read(1); held = bytearray(20 << 20); input()"
    copy = [
        "sh",
        "-c",
        f'cp {tmp_path}/file {tmp_path}/copy && exec {sys.executable} -c "{script}"',
    ]
    limits = {"one": Limits(None, 200 * MIB)}
    with LimitedGroup("one", limits["one"]) as group, Watch({"one": group}, limits) as seen:
        with subprocess.Popen(group.command(copy), stdin=subprocess.PIPE) as process:
            eventually(lambda: group.usage().anonymous_bytes > 20 * MIB)
            assert group.held_bytes() > 20 * MIB
            seen._take()
            process.communicate(b"\n")
        part = seen.parts()["one"]
        assert 20 < part.peak < 45 < part.kernel_peak
        assert part.ended == 0


@pytest.fixture(scope="module")
def stack() -> Iterator[LimitedStack]:
    with limited_stack() as stack:
        yield stack


def honest(site: Site, seconds: float) -> None:
    site.honest(seconds)


def hog(site: Site, seconds: float) -> None:
    site.honest(seconds)
    subprocess.run(site.stack.groups()["ingest-1"].command(HOG), check=False)


def lose_one(site: Site, seconds: float) -> None:
    site.honest(seconds)
    with MongoClient[dict[str, Any]](site.mongodb_uri) as client:
        client[DATABASE]["staff"].delete_one({"staff_id": {"$in": list(site.ledger.staff)}})


@pytest.mark.long
@pytest.mark.parametrize(
    ("load", "problems"),
    [
        (honest, set()),
        (hog, {"ingest-1 killed 2 times"}),  # in the warm-up and after it
        (lose_one, {"2 lost"}),
    ],
)
def test_a_case_on_the_whole_stack(
    stack: LimitedStack,
    load: Callable[[Site, float], None],
    problems: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loadtests.headroom.ledger.DRAIN_SECONDS", 5)
    monkeypatch.setattr("loadtests.headroom.results.FREE_SHARE", 0)
    case = Case("a case", load, (Rule(HONEST, seconds=30),))
    measured = run(stack, case, 3, {})
    assert set(measured.problems) == problems
    # Ten a second, in the warm-up too: not one that it could not account for.
    assert measured.stored.acknowledged == 10 * (3 + WARM_UP_SHARE * 3)
