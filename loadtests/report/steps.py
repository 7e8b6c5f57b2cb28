"""A plan's table: each step on each architecture."""

from loadtests.architectures import NEW, OLD
from loadtests.figures import LATE_MS, Summary, spread
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.report.document import Section
from loadtests.report.published import AFTER, BEFORE, milliseconds, published
from loadtests.report.results import Results, mean
from loadtests.tables import Table

HEADS = "step,architecture,responses/s,min,max,mean,p50,p99,errors,verif.,late,mean/new,published"
PUBLISHED = {OLD: BEFORE, NEW: AFTER}


def plan(results: Results, name: str) -> Section:
    """Return all steps of a plan."""
    rows = [
        _row(results, name, step, architecture)
        for step in results.of(name)
        for architecture, repetitions in results.steps[name, step].items()
        if repetitions
    ]
    return Section(name, [PLANS[name].text], Table(HEADS.split(","), rows))


def _row(results: Results, plan: str, step: str, architecture: str) -> list[str]:
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
        milliseconds(middle.late_p99_ms) + ("!" if middle.late_p99_ms > LATE_MS else ""),
        "" if architecture == NEW else ratio.shown(1),
        theirs[plan, step].shown() if (plan, step) in theirs else "",
    ]
