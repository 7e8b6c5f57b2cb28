"""The report's sections of response times: last steps, sweeps, and all steps of a plan."""

import math

from loadtests.architectures import NEW, OLD
from loadtests.figures import Summary, spread
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.report.charts import Axis, chart
from loadtests.report.document import TEXTS, Section
from loadtests.report.published import milliseconds, published
from loadtests.report.results import Results, mean
from loadtests.tables import Table

HEADS = "step,architecture,responses/s,min,max,mean,p50,p99,errors,verif.,late,mean/new,published"
PUBLISHED = {OLD: "before", NEW: "after"}
MEAN_MS = Axis("mean response, ms", log=True)


def last_steps(results: Results) -> Section:
    """Return the last step of each plan that is the source's."""
    rows = []
    before, after = published("before"), published("after")
    for plan in results.plans():
        key = plan, results.of(plan)[-1]
        for architecture in results.architectures(plan):
            if PLANS[plan].is_sweep or architecture == NEW:
                continue
            means = [results.spread(*key, name, mean) for name in (architecture, NEW)]
            shown = [one.shown(1) for one in (*means, results.ratio(*key, architecture, mean))]
            known = architecture == OLD and key in before
            theirs = [when[key].shown() if known else "" for when in (before, after)]
            rows.append([*key, architecture, *shown, *theirs])
    heads = ["plan", "last step", "architecture", "its mean", "new", "ratio"]
    table = Table([*heads, "published before", "published after"], rows)
    return Section("At the source's rates", [TEXTS["last_steps"]], table)


def sweeps(results: Results) -> Section:
    """Return the highest rates, and the courses of response times."""
    title, plans = "Where each architecture ends", results.plans()
    rates = [plan for plan in plans if PLANS[plan].is_sweep]
    rows = [
        _end(results, plan, architecture)
        for plan in rates
        for architecture in results.architectures(plan)
    ]
    plots = [_by_rate(results, plan) for plan in rates]
    plots += [_by_documents(results, one) for one in ("PERF-RT-2", "PERF-RT-2-1") if one in plans]
    plots = [plot for plot in plots if plot[1]]
    if not rows:
        return Section(title, (), plots=plots)
    heads = ["what", "architecture", "highest rate", "ended by", "new/this"]
    return Section(title, [TEXTS["sweeps"]], Table(heads, rows), plots)


def _end(results: Results, plan: str, architecture: str) -> list[str]:
    rate = results.highest_rate(plan, architecture)
    times = results.highest_rate(plan, NEW).median / rate.median
    ratio = "" if architecture == NEW or math.isnan(times) else f"{times:.1f}"
    return [_what(plan), architecture, rate.shown(), _reasons(results, plan, architecture), ratio]


def _reasons(results: Results, plan: str, architecture: str) -> str:
    """Return what ended the sweeps of one architecture."""
    reasons, shares = set(), []
    for step in results.of(plan):
        for one in results.steps[plan, step][architecture].values():
            kept_up = one.kept_up(int(step) / RAMP_SECONDS)
            if one.late:  # it then sends in bursts, and breaks what it measures
                reasons.add("generator late")
            elif one.wrong:
                shares.append(100 * one.wrong / one.requests)
            elif one.broke(PLANS[plan].mean_limit_ms) or not kept_up:
                reasons.add("too slow")
    if shares:
        reasons.add(f"errors, {spread(shares).shown(1)} %")
    return ", ".join(sorted(reasons))


def _what(plan: str) -> str:
    return PLANS[plan].text.split(",")[0]


def _by_rate(results: Results, plan: str) -> tuple[str, str]:
    series = {
        name: results.points(plan, name, 1 / RAMP_SECONDS) for name in results.architectures(plan)
    }
    title = f"Response time against load: {_what(plan)}"
    return plan.lower(), chart(title, series, Axis(f"{_what(plan)} a second", log=True), MEAN_MS)


def _by_documents(results: Results, plan: str) -> tuple[str, str]:
    series = {name: results.points(plan, name) for name in results.architectures(plan)}
    for when in ("before", "after"):
        every = published(when).items()
        theirs = [(float(step), one.ms) for (name, step), one in every if name == plan]
        series[f"source {when}"] = theirs
    title = f"Response time against documents: {plan}"
    return plan.lower(), chart(title, series, Axis("documents stored"), MEAN_MS)


def steps(results: Results, name: str) -> Section:
    """Return each step of a plan on each architecture."""
    rows = [
        _step(results, name, step, architecture)
        for step in results.of(name)
        for architecture, repetitions in results.steps[name, step].items()
        if repetitions
    ]
    return Section(name, [PLANS[name].text], Table(HEADS.split(","), rows))


def _step(results: Results, plan: str, step: str, architecture: str) -> list[str]:
    repetitions = results.steps[plan, step][architecture].values()
    middle = Summary._make(spread(column).median for column in zip(*repetitions, strict=True))
    errors = (
        max(one.errors for one in repetitions),
        max(one.verification_errors for one in repetitions),
    )
    ratio = results.ratio(plan, step, architecture, mean)
    theirs = published(PUBLISHED[architecture]) if architecture in PUBLISHED else {}
    return [
        f"{int(step) / RAMP_SECONDS:.0f}/s" if PLANS[plan].is_sweep else step,
        architecture,
        f"{middle.rate:.1f}",
        *(milliseconds(value) for value in middle[2:7]),  # min to p99
        *(f"{count}!" if count else "0" for count in errors),
        milliseconds(middle.late_p99_ms) + "!" * middle.late,
        "" if architecture == NEW else ratio.shown(1),
        theirs[plan, step].shown() if (plan, step) in theirs else "",
    ]
