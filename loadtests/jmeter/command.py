"""./scripts/load jmeter: a plan sent by JMeter; its figures, the gateway's, and what is stored."""

import csv
import os
import subprocess
import time
from argparse import Namespace
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from loadtests import gateway_log, targets
from loadtests.engine import endpoints, pages
from loadtests.engine.client import Api, Response, WrongResponse
from loadtests.engine.endpoints import History
from loadtests.engine.preload import PHONE_SECONDS, Preloader
from loadtests.figures import HTTP, VERIFICATION, Row, Summary, summary
from loadtests.jmeter import jmx
from loadtests.plans import Plan
from loadtests.refusals import Refused
from loadtests.verdict import PASS, judge
from scripts.processes import ROOT
from scripts.processes.waiting import eventually

HOME = "JMETER_HOME"  # names a JMeter of one's own
SETTLE_SECONDS = 30.0  # for a service's spool to drain


def home() -> Path:
    """Return where JMeter is, put together first when it is not; Refused when it cannot be."""
    if named := os.environ.get(HOME):
        if not (Path(named) / "bin" / "ApacheJMeter.jar").is_file():
            raise Refused(f"{HOME} is {named}, but there is no bin/ApacheJMeter.jar in it")
        return Path(named)
    if subprocess.run([ROOT / "loadtests" / "jmeter" / "assemble"], check=False).returncode:
        raise Refused(f"JMeter cannot be put together here: {HOME} may name the folder of one")
    return ROOT / ".cache" / "jmeter"


def run(url: str, plan: Plan, options: Namespace, log: Path | None) -> int:
    """Run a plan; status 0 when it passed. `log` is the folder of the gateway's log, if any."""
    wanted = options.only.split(",") if options.only else [step.name for step in plan.steps]
    options.output.mkdir(parents=True, exist_ok=True)
    jmeter, sender = home(), Sender(url)
    page = pages.reads_of(sender.api)
    histories = defaultdict[int, History](History)
    preloader = Preloader(sender.api, _oldest(plan))
    measured: dict[str, list[Summary]] = {}
    print(f"{plan.name}: {plan.text}", flush=True)
    for step in plan.steps:
        for staff, count in step.preload:
            preloader.preload(staff, histories[staff], count)
        if step.name not in wanted:
            continue
        [staff] = step.staff
        if plan.writes and staff not in histories:
            histories[staff] = History(sender.stored(staff))
        began = time.time()
        rows = sender.send(jmeter, jmx.write(plan, step, options.ramp, options.output, page))
        own = [row for row in rows if row.name == step.kind]
        measured[step.name] = [summary(own)]
        print(measured[step.name][0].line(step.name), flush=True)
        if log:
            print(_logged(log, began, step.kind).line("log"), flush=True)
        for row in own if plan.writes else []:
            _count(histories[staff], row)
    lost = plan.writes and sender.lost(histories)
    verdict = judge(plan, measured, lost=lost)
    print(f"  {verdict}", flush=True)
    return int(verdict.word != PASS)


class Sender:
    """Has JMeter send to a server, which is asked beside it what it holds."""

    def __init__(self, url: str) -> None:
        self.api = Api(url)
        self._target = urlsplit(url)

    def send(self, jmeter: Path, plan: Path) -> list[Row]:
        """Run JMeter with a test plan; return what its file says (.jtl, beside it)."""
        results, properties = plan.with_suffix(".jtl"), plan.with_suffix(".properties")
        results.unlink(missing_ok=True)  # it would append
        said = self._target
        values = {"protocol": said.scheme, "host": said.hostname, "port": said.port or ""}
        values |= {"token": os.environ.get("WAYMARK_TOKEN", "")}
        properties.touch(0o600)  # it may hold a token
        properties.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        jar, log = jmeter / "bin" / "ApacheJMeter.jar", plan.with_suffix(".log")
        done = subprocess.run(
            ["java", "-jar", jar, "-n", "-t", plan, "-l", results, "-j", log, "-q", properties],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        properties.unlink()
        if done.returncode or not results.exists():
            raise Refused(f"JMeter fails, {log} says why: {done.stderr[-200:]}")
        return rows(results)

    def stored(self, staff: int) -> int:
        """Return how many detections somebody has."""
        return len(endpoints.newest_first(self.api.send(endpoints.extract(staff))))

    def lost(self, histories: dict[int, History]) -> bool:
        """Tell whether what is stored is not what was acknowledged, once the spools are empty."""
        problems = [self._problem(staff, history) for staff, history in histories.items()]
        wrong = [problem for problem in problems if problem]
        acknowledged = sum(history.acknowledged for history in histories.values())
        right = f"exactly the {acknowledged} acknowledged detections"
        print(f"  stored: {'; '.join(wrong) or right}", flush=True)
        return bool(wrong)

    def _problem(self, staff: int, history: History) -> str:
        """Return how somebody's detections differ from the acknowledged ones."""
        try:
            if history.queued:
                with suppress(TimeoutError):
                    eventually(lambda: self.stored(staff) >= history.acknowledged, SETTLE_SECONDS)
            history.verify(self.api.send(endpoints.extract(staff)))
        except WrongResponse as error:
            return f"{staff}: {error}"
        return ""


def rows(results: Path) -> list[Row]:
    """Return a row for each line of a file of JMeter's results.

    JMeter does not tell when it should have sent: from the first on, after its own delays.
    """
    with results.open(newline="") as file:
        lines = sorted(csv.DictReader(file), key=lambda line: int(line["timeStamp"]))
    return [_row(line, int(lines[0]["timeStamp"])) for line in lines]


def _row(line: dict[str, str], first: int) -> Row:
    sent, code = (int(line["timeStamp"]) - first) / 1000, line["responseCode"]
    status = int(code) if code.isdecimal() else 0
    good = line["success"] == "true"
    error = "" if good else VERIFICATION if status in targets.STORED else HTTP
    took, size = float(line["elapsed"]), int(line["bytes"])
    detail = line["failureMessage"] or line["responseMessage"] if error else ""
    return Row("", "", line["label"], sent, sent, took, status, size, error, detail)


def _count(history: History, row: Row) -> None:
    """Note what became of an insert; one whose text was wrong may be stored."""
    status = 0 if row.error == VERIFICATION else row.status
    history.count(Response(status, b"", row.ms), 1)


def _logged(log: Path, began: float, kind: str) -> Summary:
    """Return the figures of the gateway's log since a time."""
    path = urlsplit(endpoints.extract(0) if kind == "extract" else endpoints.insert_now(0)).path
    return summary([row for row in gateway_log.rows(log, began) if row.name == path])


def _oldest(plan: Plan) -> int:
    """Return the time of the first document of each history, unix seconds."""
    return int(time.time()) - PHONE_SECONDS * sum(n for step in plan.steps for _, n in step.preload)
