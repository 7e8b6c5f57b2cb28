"""Each alert fires when it must, and is silent when not; what it names is there."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.metrics import HISTOGRAM, METRICS
from scripts.processes import ROOT
from tests.deploy.cases import CASES, MORE, STEPS, Case
from tests.needs import need

FOLDER = ROOT / "deploy" / "observability"
RULES = FOLDER / "rules.yml"
GROUPS = yaml.safe_load(RULES.read_text())["groups"]
ALL = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in ALL if "alert" in rule}
RECORDED = {rule["record"] for rule in ALL if "record" in rule}
NAMES = {metric.name for metric in METRICS} | {
    f"{metric.name}{end}"
    for metric in METRICS
    if metric.kind == HISTOGRAM
    for end in ("_bucket", "_sum", "_count")
}
EACH = [(name, *case[:4]) for name, case in CASES.items()]


@pytest.fixture(autouse=True)
def promtool() -> None:
    need("promtool")


def run(*arguments: str | Path) -> str:
    """Run promtool; it must be content."""
    done = subprocess.run(
        ["promtool", *arguments], check=False, capture_output=True, text=True, cwd=FOLDER
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alert_test(
    series: Mapping[str, str], at: int, name: str, expected: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "interval": f"{STEPS.get(name, 1)}m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "alert_rule_test": [{"eval_time": f"{at}m", "alertname": name, "exp_alerts": expected}],
    }


def check(folder: Path, name: str, *tests: dict[str, Any]) -> None:
    """Have promtool test one alert; with all of them a week takes it half a minute."""
    expr = ALERTS[name]["expr"]
    needed = [rule for rule in ALL if rule.get("alert") == name or rule.get("record", "-") in expr]
    rules = folder / "rules.json"
    rules.write_text(json.dumps({"groups": [{"name": "one", "rules": needed}]}))
    file = folder / "tests.json"
    settings = {"rule_files": [str(rules)], "evaluation_interval": tests[0]["interval"]}
    file.write_text(json.dumps(settings | {"tests": tests}))
    run("test", "rules", file)


def firing(name: str, labels: Mapping[str, str], summary: str) -> list[dict[str, Any]]:
    rule = ALERTS[name]
    annotations = {"summary": summary, "runbook": f"docs/runbook.md#{name.lower()}"}
    return [{"exp_labels": {**rule["labels"], **labels}, "exp_annotations": annotations}]


def test_each_alert_has_a_case_and_each_case_an_alert() -> None:
    assert CASES.keys() == ALERTS.keys()
    assert all(case.silent for case in CASES.values())
    assert {rule["labels"]["severity"] for rule in ALERTS.values()} == {"page", "look"}


@pytest.mark.parametrize(("name", "series", "at", "labels", "summary"), [*EACH, *MORE])
def test_it_fires_when_it_must(
    tmp_path: Path, name: str, series: Mapping[str, str], at: int, labels: Any, summary: str
) -> None:
    check(tmp_path, name, alert_test(series, at, name, firing(name, labels, summary)))


@pytest.mark.parametrize(("name", "case"), CASES.items())
def test_it_is_silent_when_not(tmp_path: Path, name: str, case: Case) -> None:
    """Up to the time at which it would fire, and no series is one that nobody has."""
    check(tmp_path, name, *(alert_test(series, case.at, name, []) for series in case.silent))
    told = {re.split(r"\{", series)[0] for series in case.fires}
    for series in case.silent:
        assert {re.split(r"\{", one)[0] for one in series} <= told | names_in(ALERTS[name]["expr"])


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:waymark[\w:]*|up)\b", expression)) - {"waymark"}


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.get("alert") or rule["record"])
def test_each_metric_of_a_rule_is_in_the_table(rule: dict[str, Any]) -> None:
    names = names_in(rule["expr"])
    assert names
    assert names <= NAMES | RECORDED | {"up"}


@pytest.mark.parametrize("name", ALERTS)
def test_each_alert_has_its_section_in_the_runbook(name: str) -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    section = text.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
    assert "\n```sh\n" in section, "no first command"


def test_the_files_of_prometheus_are_in_order(tmp_path: Path) -> None:
    for file in ("prometheus.yml", "rules.yml", "targets.yml"):
        (tmp_path / file).write_bytes((FOLDER / file).read_bytes())
    (tmp_path / "token").write_text("secret")
    assert "1 rule files found" in run("check", "config", tmp_path / "prometheus.yml")
    assert f"{len(ALL)} rules found" in run("check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_the_dashboard_shows_what_there_is(tmp_path: Path) -> None:
    """Each expression is one of Prometheus's, and of metrics that are in the table."""
    board = json.loads((FOLDER / "grafana" / "dashboards" / "waymark.json").read_text())
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(shown) > 12
    assert set().union(*map(names_in, shown)) <= NAMES | RECORDED | {"up"}
    rules = [{"record": f"board:panel{n}", "expr": expr} for n, expr in enumerate(shown)]
    file = tmp_path / "board.json"
    file.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))
    assert f"{len(shown)} rules found" in run("check", "rules", file)
