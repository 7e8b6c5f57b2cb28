"""The report's section of sharding alone: what it costs an insert, what it gains a history."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from loadtests.architectures import MOST_SHARDS, sharded
from loadtests.comparison.playbook import SHARDED
from loadtests.figures import Spread, spread
from loadtests.plans import FIVE, OTHER_FIVE, PLANS
from loadtests.report.document import TEXTS, Section, table
from loadtests.report.results import Results
from loadtests.shards import people

COUNTS = range(1, MOST_SHARDS + 1)
HEADS = ["what", "side", *(f"{n} shard{'s' * (n > 1)}" for n in COUNTS)]
SHOWN_DOCUMENTS = ("600", "3000", "6000", "9000")
CHOICES = {"0 to 4": FIVE, "0, 11, 12, 30, 40": OTHER_FIVE, "0 to 13": range(14)}
CHOICES |= {"0 to 999": range(1000)}


def section(results: Results) -> Section:
    """Return the table, or nothing where no side had shards."""
    rows = list(_rows(results))
    if not rows:
        return Section("")
    for ids, staff in CHOICES.items():
        shares = [100 * max(people(staff, n)) / len(staff) for n in COUNTS]
        of_each = ["/".join(map(str, people(staff, n))) for n in COUNTS]
        cells = zip(shares, of_each, strict=True)
        shown = (f"{share:.1f} %" + f", {each}" * (len(staff) <= 14) for share, each in cells)
        rows.append([f"the busiest shard's part of staff {ids}", "both", *shown])
    facts = {"slower": results.facts.get("slower", 1.0)}
    return Section("Sharding alone", [TEXTS["sharding"].format(**facts)], table(HEADS, rows))


def gain(results: Results, plan: str, step: str, base: str, shards: int) -> Spread:
    """Return how many times as fast a step was with shards as with one mongod of their build."""
    if (plan, step) not in results.steps:
        return spread(())
    return results.ratio(plan, step, sharded(base, 0), sharded(base, shards))


def _rows(results: Results) -> Iterator[list[str]]:
    pairs = [(plan, base) for plan, bases in SHARDED.items() for base in bases]
    for plan, base in pairs:
        steps = results.of(plan)  # none where it was not run
        if not any(results.steps[plan, step][sharded(base, 0)] for step in steps):
            continue
        if PLANS[plan].is_sweep:
            what, figures = f"the highest rate of {plan}", partial(_rate, results, plan, base)
            yield [what, base, *map(figures, COUNTS)]
        elif PLANS[plan].writes:
            yield [f"an insert, {plan}", base, *map(partial(_mean, results, plan, base), COUNTS)]
        else:
            for step in (step for step in SHOWN_DOCUMENTS if step in steps):
                shown = [gain(results, plan, step, base, n).shown(2) for n in COUNTS]
                yield [f"a history, {plan}, {step} documents", base, *shown]
            pays = partial(_pays_from, steps, partial(gain, results, plan, base=base))
            yield [f"{plan} pays from so many documents on", base, *map(pays, COUNTS)]


def _mean(results: Results, plan: str, base: str, shards: int) -> str:
    """Return the gain over all steps of a plan."""
    steps = [gain(results, plan, step, base, shards) for step in results.of(plan)]
    return spread(ratio.median for ratio in steps).shown(2)


def _rate(results: Results, plan: str, base: str, shards: int) -> str:
    rates = [results.highest_rate(plan, sharded(base, n)).median for n in (shards, 0)]
    return "-" if any(map(math.isnan, rates)) else f"{rates[0] / rates[1]:.2f}"


def _pays_from(steps: Sequence[str], gained: Callable[..., Spread], shards: int) -> str:
    """Return the step from which on all are faster with shards; `-` where they were not run."""
    ratios = [(step, gained(step=step, shards=shards).median) for step in steps]
    known = [(step, ratio) for step, ratio in ratios if not math.isnan(ratio)]
    slow = [number for number, (_, ratio) in enumerate(known) if ratio <= 1]
    first = slow[-1] + 1 if slow else 0
    if not known:
        return "-"
    return known[first][0] if first < len(known) else "never here"
