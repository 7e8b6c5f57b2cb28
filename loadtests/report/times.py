"""The report's sections of response times: last steps, sweeps, and all steps of a plan."""

from loadtests.architectures import (
    COMBINED,
    NEW,
    OLD,
    REVERTED,
    SEPARATED,
    SHARDS,
    is_sharded,
    sharded,
)
from loadtests.comparison.playbook import sides
from loadtests.figures import Summary, spread
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.report.charts import Axis, chart
from loadtests.report.document import TEXTS, Section, marked, table
from loadtests.report.published import AFTER, BEFORE, WHENS, milliseconds, published
from loadtests.report.results import Results

LAST = (
    "plan,last step,architecture,its mean,new or separated,ratio,published before,published after"
)
ENDS = "what,architecture,highest rate,ended by,new/this"
STEPS = "step,architecture,responses/s,min,max,mean,p50,p99,errors,verif.,late,mean/later,published"
PUBLISHED = {OLD: BEFORE, NEW: AFTER, COMBINED: BEFORE, SEPARATED: AFTER}
MEAN_MS = Axis("mean response, ms", log=True)


def last_steps(results: Results) -> Section:
    """Return the last step of each plan that is the source's."""
    rows = []
    for plan in (name for name in results.plans() if not PLANS[name].is_sweep):
        key = plan, results.of(plan)[-1]
        theirs = [published(when).get(key) for when in WHENS]
        earlier, later = sides(plan)
        for name in (side for side in results.architectures(plan) if side != later):
            means = results.mean(*key, name), results.mean(*key, later), results.ratio(*key, name)
            shown = [figure.shown() if figure and name == earlier else "" for figure in theirs]
            rows.append([*key, name, *(mean.shown(1) for mean in means), *shown])
    return Section("At the source's rates", [TEXTS["last_steps"]], table(LAST.split(","), rows))


def sweeps(results: Results) -> Section:
    """Return the highest rates."""
    rows = []
    for plan in (name for name in results.plans() if PLANS[name].is_sweep):
        what = PLANS[plan].text.split(",")[0]
        for name in results.architectures(plan):
            least = "at least " if results.ended_late(plan, name) else ""
            rate = results.highest_rate(plan, name).shown()
            ratio = "" if name == NEW else results.rates_ratio(plan, name)
            reasons = _reasons(results, plan, name)
            rows.append([what, name, rate if rate == "-" else least + rate, reasons, ratio])
    text, title = [TEXTS["sweeps"]], "Where each architecture ends"
    return Section(title, text, table(ENDS.split(","), rows)) if rows else Section("")


def courses(results: Results) -> dict[str, str]:
    """Return plots of the courses of response times: against the load, against the documents."""
    plots, plans = {}, results.plans()
    for plan in (name for name in plans if PLANS[name].is_sweep):
        what = PLANS[plan].text.split(",")[0]
        title, across = f"Response time against load: {what}", Axis(f"{what} a second", log=True)
        series = results.course(plan, 1 / RAMP_SECONDS)
        for name in REVERTED:  # the table has them
            series.pop(name, None)
        plots[plan.lower()] = chart(title, series, across, MEAN_MS)
    for plan in (name for name in ("PERF-RT-2", "PERF-RT-2-1") if name in plans):
        series = results.course(plan)
        for when in WHENS:
            known = published(when).items()
            theirs = ((step, row.ms) for (name, step), row in known if name in (plan, f"{plan}b"))
            series[f"source {when}"] = [(float(step), ms) for step, ms in theirs]
        title = f"Response time against documents: {plan}"
        plots[plan.lower()] = chart(title, series, Axis("documents stored"), MEAN_MS)
    return {name: svg for name, svg in plots.items() if svg}


def _reasons(results: Results, plan: str, architecture: str) -> str:
    """Return what ended the sweeps of one architecture."""
    reasons, shares = set(), []
    for step in results.of(plan):
        for repetition in results.steps[plan, step][architecture].values():
            kept_up = repetition.kept_up(results.rate(step, architecture))
            if repetition.late:  # it then sends in bursts, and breaks what it measures
                reasons.add("generator late")
            elif repetition.wrong:
                shares.append(100 * repetition.wrong / repetition.requests)
            elif repetition.broke(PLANS[plan].mean_limit_ms) or not kept_up:
                reasons.add("too slow")
    if shares:
        reasons.add(f"errors, {spread(shares).shown(1)} %")
    return ", ".join(sorted(reasons))


def steps(results: Results, plan: str) -> Section:
    """Return each step of a plan on each architecture."""
    rows = [
        [
            f"{results.rate(step, name):.0f}/s" if PLANS[plan].is_sweep else step,
            name,
            *_figures(list(repetitions.values())),
            _ratio(results, plan, step, name),
            _published(plan, step, name),
        ]
        for step in results.of(plan)
        for name, repetitions in results.steps[plan, step].items()
        if repetitions
    ]
    return Section(plan, [PLANS[plan].text], table(STEPS.split(","), rows))


def _ratio(results: Results, plan: str, step: str, name: str) -> str:
    """Return a mean by the later one's; with shards, one mongod's by this one's."""
    if is_sharded(name):
        one_mongod = sharded(name.partition(SHARDS)[0], 0)
        return "" if name == one_mongod else results.ratio(plan, step, one_mongod, name).shown(1)
    return "" if name == sides(plan)[1] else results.ratio(plan, step, name).shown(1)


def _figures(repetitions: list[Summary]) -> list[str]:
    middle = Summary._make(spread(column).median for column in zip(*repetitions, strict=True))
    errors = max(repetition.errors for repetition in repetitions)
    wrong = max(repetition.verification_errors for repetition in repetitions)
    return [
        f"{middle.rate:.1f}",
        *(milliseconds(value) for value in middle[2:7]),  # min to p99
        *(marked(str(count), bad=count > 0) for count in (errors, wrong)),
        marked(milliseconds(middle.late_p99_ms), bad=middle.late),
    ]


def _published(plan: str, step: str, architecture: str) -> str:
    theirs = published(PUBLISHED.get(architecture, "")).get((plan, step))
    return theirs.shown() if theirs else ""
