"""What would measure nothing is refused with one sentence, before anything is started."""

import sys

import pytest

from loadtests import main
from loadtests.engine.generator import generate
from scripts.processes.ports import free_port

MIB = 2**20


def refused(
    arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run a command that has to end with status 2; return its last line on the error output."""
    monkeypatch.setattr(sys, "argv", ["load", *arguments.split()])
    monkeypatch.setattr(main, "_target", lambda _: pytest.fail("it starts something"))
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run PERF-TP-1 --ramp -1", "--ramp -1: give a number above 0"),
        ("run PERF-TP-1 --ramp 0", "--ramp 0: give a number above 0"),
        ("run PERF-TP-1 --ramp nan", "--ramp nan: give a number above 0"),
        ("run PERF-TP-1 --ramp inf", "--ramp inf: give a number above 0"),
        ("compare --ramp -1", "--ramp -1: give a number above 0"),
        ("compare --quick --repetitions 0", "--repetitions 0: give 1 or more"),
        ("capacity --services 1 0", "--services 0: give 1 or more"),
        ("capacity --p99 0", "--p99 0: give a number above 0"),
        ("capacity --only INSERTS", "no such search, but INSERT, BATCH-50"),
        ("headroom nothing never", "no case has nothing or never in its name"),
        ("speed nothing", "no case has nothing in its name"),
        ("headroom --minutes -1", "--minutes -1: give a number above 0"),
        ("run PERF-TP-1 --services 0", "--services 0: give 1 or more"),
        ("run PERF-TP-1 --pages -2", "--pages -2: give -1 or more"),
        ("run PERF-TP-1 --shift -5", "--shift -5: give 0 or more"),
        ("run PERF-TP-1 --hacs 0,a", "--hacs a: give numbers of staff"),
        ("run PERF-RT-1 --only 77", "no such step, but 2100, 2520, 2940, 3360, 3780"),
        ("run PERF-RT-1 --only 3780 --until-it-breaks", "--only: what goes on until it breaks"),
        ("run SWEEP-INSERT --only 2100", "--only: what goes on until it breaks"),
        ("run PERF-TP-1 --rows /no/such/rows.csv", "there is no folder /no/such"),
        ("run PERF-TP-1 --ui 0", "--ui 0: give a port"),
        ("run PERF-TP-1 --target http://127.0.0.1:1 --old", "--old is of one that is started"),
        ("run PERF-TP-1 --target http://127.0.0.1:1 --services 3", "--services is of one"),
        ("run SPLIT-READS-1", "compares two sides: give --combined or --separated"),
        ("run SPLIT-READS-1 --old", "compares two sides: give --combined or --separated"),
        ("run CAP-INSERT", "CAP-INSERT is a search: ./scripts/load capacity --only INSERT"),
        ("run PERF-TP-9", "there is no plan PERF-TP-9"),
        ("run PERF-TP-1 --slower 0", "--slower 0: give a number above 0"),
        ("run PERF-TP-1 --sharded 5", "argument --sharded: invalid choice: 5"),
        ("run PERF-TP-1 --sharded --durable", "not allowed with argument"),
        ("run PERF-TP-1 --target http://127.0.0.1:1 --sharded 2", "--sharded is of one"),
        ("compare --sharded 1,9", "1,9: give numbers from 1 to 4, by commas"),
        ("collapse --cores 0", "--cores 0: give a number above 0"),
        ("report /no/such/folder", "/no/such/folder has no files of a comparison"),
        ("workload fleet --seconds 0", "--seconds 0: give a number above 0"),
        ("workload fleet --size 1 --seconds 5", "no device would push once"),
        ("workload sync --size 5000", "--size is of fleet, not of sync"),
        ("workload retail --csv waiting.csv", "--csv is of archive, not of retail"),
        ("workload archive --speed 60", "not be frozen long enough"),
        ("workload archive --target http://127.0.0.1:1", "leave out --target"),
    ],
)
def test_what_measures_nothing_is_refused(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert says in refused(arguments, capsys, monkeypatch)


@pytest.mark.parametrize("command", ["run PERF-TP-1", "run PERF-RT-2 --ui", "workload sync"])
def test_a_dead_target_is_one_plain_line(
    command: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setattr(sys, "argv", ["load", *command.split(), "--target", url])
    with pytest.raises(SystemExit):
        main.main()
    says = f"nothing answers at {url}: connection refused. Is the stack up?"
    assert capfd.readouterr().err == f"load: {says}\n"
    assert generate(url, "PERF-TP-1", {"ramp": 1}) == 2  # as from the page
    assert capfd.readouterr().err == f"{says}\n"
