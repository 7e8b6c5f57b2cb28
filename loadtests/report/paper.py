"""paper.md: the source's tables in its order, beside each row what the same plan gave here."""

import math
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from loadtests.architectures import NEW, OLD, UNOPTIMISED
from loadtests.comparison.playbook import SHARDED, sides
from loadtests.figures import spread
from loadtests.plans import PLANS
from loadtests.report import sharding
from loadtests.report.document import Section, table
from loadtests.report.published import QUERY, WHENS, Published, everything, milliseconds
from loadtests.report.results import Results

TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("paper.toml").read_text())
SHARDS = (2, 3, 4)
NOT_RUN, VOID = "not run", "void"
UNPUBLISHED = ("PERF-TP-1-1", "PERF-RT-3", "SPLIT-END")  # plans of the source without a row
STEP = "step"


def paper(results: Results) -> str:
    """Return the whole document, in Markdown."""
    sections = (_published(results, *of_one) for of_one in _by_section())
    alone = sharding.section(results)._replace(title="Sharding alone, more than two shards")
    parts = [
        TEXTS["head"].strip().format(**results.facts),
        *(section.markdown() for section in sections),
    ]
    parts += [_unpublished(results).markdown(), alone.markdown() if alone.table else ""]
    wishes = table(["its wish", "the answer"], [_wish(wish, results) for wish in TEXTS["wishes"]])
    return "\n\n".join(filter(None, [*parts, f"## What it wished for\n\n{wishes}"])) + "\n"


def _by_section() -> Iterator[tuple[str, list[Published]]]:
    for title, rows in groupby(everything(), lambda row: row.section):
        yield title, list(rows)


def _published(results: Results, title: str, rows: list[Published]) -> Section:
    by_step: dict[tuple[str, str], dict[str, Published]] = {}
    for row in rows:
        by_step.setdefault((row.plan, row.step), {})[row.when] = row
    plans = {plan for plan, _ in by_step}
    has_shards = not plans.isdisjoint(SHARDED)
    shards = [f"new, {n} shards" for n in SHARDS if has_shards]
    heads = [
        "plan",
        STEP,
        *WHENS,
        *(f"{side}, here" for side in _compared(rows[0].plan)[1:]),
        *shards,
    ]
    cells = []
    for (plan, step), of_step in by_step.items():
        theirs = (_theirs(of_step.get(when)) for when in WHENS)
        ours = _ours(results, plan, step, has_shards=has_shards)
        cells.append([plan, step, *theirs, *ours])
    said = TEXTS["sections"][title]
    text = [f"**Theirs:** {said['theirs']}", f"**Here:** {_here(results, rows)}"]
    return Section(title, [*text, said["ours"]], table(heads, cells))


def _unpublished(results: Results) -> Section:
    """Return the plans of which the source published nothing."""
    rows = [
        [plan, step.name, *_ours(results, plan, step.name, has_shards=False)]
        for plan in UNPUBLISHED
        for step in PLANS[plan].steps
    ]
    heads = ["plan", STEP, "old, or combined", "new, or separated"]
    return Section("Without a published row", [TEXTS["unpublished"].strip()], table(heads, rows))


def _compared(plan: str) -> tuple[str, str, str]:
    """Return which plan ran here for a plan of the source, and its two sides."""
    if plan == QUERY[0]:
        return "SWEEP-EXTRACT", UNOPTIMISED, OLD
    return plan, *sides(plan)


def _theirs(row: Published | None) -> str:
    if not row:
        return "not published"
    spread_of_times = f" ({row.min_ms} to {row.max_ms})" if row.min_ms else ""
    errors = f", {row.errors} % errors" if row.errors else ""
    return milliseconds(row.ms) + spread_of_times + (f", {row.rate}/s" if row.rate else "") + errors


def _ours(results: Results, plan: str, step: str, *, has_shards: bool) -> list[str]:
    plan, earlier, later = _compared(plan)
    cells = [_measured(results, plan, step, side) for side in (earlier, later)]
    for shards in SHARDS if has_shards else ():
        gained = sharding.gain(results, plan, step, NEW, shards)
        cells.append(NOT_RUN if math.isnan(gained.median) else f"x {gained.shown(2)}")
    return cells


def _measured(results: Results, plan: str, step: str, side: str) -> str:
    """Return the median of what was measured in time, or why there is none."""
    repetitions = list(results.steps.get((plan, step), {}).get(side, {}).values())
    in_time = [repetition for repetition in repetitions if not repetition.late]
    if not in_time:
        return VOID if repetitions else NOT_RUN
    rate, least, most, mean = (
        spread(column).median
        for column in zip(*((row.rate, row.min, row.max, row.mean) for row in in_time), strict=True)
    )
    wrong = max(repetition.wrong for repetition in in_time)
    times = f"{milliseconds(mean)} ({milliseconds(least)} to {milliseconds(most)}), {rate:.1f}/s"
    return times + (f", {wrong} wrong" if wrong else "")


def _here(results: Results, rows: list[Published]) -> str:
    """Return by how much the later side was faster, over all steps."""
    ratios, sides_here = [], dict.fromkeys(_compared(row.plan)[1:] for row in rows)
    for plan, step in dict.fromkeys((row.plan, row.step) for row in rows):
        ours, earlier, later = _compared(plan)
        if (ours, step) in results.steps:
            ratios.append(results.ratio(ours, step, earlier, later).median)
    ratio = spread(ratios)
    if math.isnan(ratio.median):
        return "not run."
    ((earlier, later),) = sides_here
    return f"the mean of {earlier} by that of {later}, over all steps: {ratio.shown(1)}."


def _wish(wish: dict[str, str], results: Results) -> list[str]:
    ends = {
        f"{plan.removeprefix('SWEEP-').lower()}_{side}": f"{least}{rate.shown()}/s"
        for plan in ("SWEEP-INSERT", "SWEEP-EXTRACT")
        for side in (OLD, NEW)
        for rate in [results.highest_rate(plan, side)]
        for least in ["at least " * results.ended_late(plan, side)]
    }
    return [wish["wish"], wish["answer"].format(**ends)]
