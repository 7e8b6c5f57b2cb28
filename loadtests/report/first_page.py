"""The report's first page: whether each architecture meets the requirement."""

from loadtests.architectures import NEW, OLD
from loadtests.plans import PLANS
from loadtests.report import times
from loadtests.report.document import TEXTS, Section, marked, table
from loadtests.report.results import Results
from loadtests.verdict import PASS, VOID, Verdict, judge


def verdicts(results: Results) -> dict[str, dict[str, Verdict]]:
    """Return the verdict on each plan of the source, for each architecture that it was run on."""
    return {
        name: {side: _verdict(results, name, side) for side in results.architectures(name)}
        for name in results.plans()
        if PLANS[name].is_the_sources
    }


def first_page(results: Results) -> Section:
    """Return what a manager reads: three sentences, the verdicts, the plots."""
    text = [TEXTS["requirement"], " ".join(_sentences(results))]
    return Section("The requirement", text, verdict_table(results), times.courses(results))


def verdict_table(results: Results) -> str:
    """Return a line for each plan, with a column for each architecture."""
    by_plan = verdicts(results)
    names = list(dict.fromkeys(name for sides in by_plan.values() for name in sides))
    rows = [[plan, *(_cell(sides.get(name)) for name in names)] for plan, sides in by_plan.items()]
    return table(["plan", *names], rows) if rows else ""


def _cell(verdict: Verdict | None) -> str:
    return marked(str(verdict), bad=verdict.word != PASS) if verdict else ""


def _verdict(results: Results, plan: str, architecture: str) -> Verdict:
    steps = {
        step: list(results.steps[plan, step][architecture].values()) for step in results.of(plan)
    }
    measured = {step: repetitions for step, repetitions in steps.items() if repetitions}
    exceptions = results.exceptions(plan, architecture)
    lost = results.lost(plan, architecture)
    return judge(PLANS[plan], measured, lost=lost, exceptions=exceptions)


def _sentences(results: Results) -> list[str]:
    """Return how many plans pass, how many requests each takes, and what was verified."""
    by_plan, said = verdicts(results), []
    for name in (NEW, OLD):
        words = [sides[name].word for sides in by_plan.values() if name in sides]
        void = words.count(VOID)
        said.append(f"{name} passes {words.count(PASS)} of {len(words) - void} plans")
        said += [f"{void} more {'is' if void == 1 else 'are'} void"] if void else []
    ratios = [
        f"{ratio} times the {PLANS[plan].text.split(',')[0]} of {OLD}"
        for plan in (name for name in results.plans() if PLANS[name].is_sweep)
        if OLD in results.architectures(plan) and (ratio := results.rates_ratio(plan, OLD)) != "-"
    ]
    repetitions = [
        repetition for steps in results.steps.values() for repetition in steps[NEW].values()
    ]
    wrong = sum(repetition.verification_errors for repetition in repetitions)
    took = f"At its highest rate {NEW} takes {' and '.join(ratios)}." if ratios else ""
    requests = sum(repetition.requests for repetition in repetitions)
    checked = f"Of {requests:,} answers of {NEW} {wrong} were wrong."
    return [f"{', '.join(said).capitalize()}.", *filter(None, [took]), checked]
