"""Writes steps of plans as test plans of JMeter (.jmx), which say what each answer has to be.

They are the source's, but that its end_time is past by now (it would read nothing), and that one
of them misspells the path.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment

from loadtests.engine import endpoints
from loadtests.plans import PLANS, Plan, Step, requests
from loadtests.targets import ADDED

JMX = Path(__file__).with_name("plan.jmx.jinja").read_text()
TEMPLATE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(JMX)
KINDS = ("insert", "extract")
# A thread sends one request, and so no plan that divides its requests over several staff.
NAMES = [
    plan.name
    for plan in PLANS.values()
    if plan.is_the_sources
    and all(step.kind in KINDS and len(step.staff) == 1 for step in plan.steps)
]


def write(plan: Plan, step: Step, seconds: int, folder: Path, page: Mapping[str, float]) -> Path:
    """Write a test plan with a ramp-up of so many seconds; return its file.

    `page` is what an open page reads, as pages.reads_of tells.
    """
    file = folder / f"{plan.name}-{step.name}.jmx"
    [staff] = step.staff
    path = endpoints.extract(staff) if step.kind == "extract" else endpoints.insert_now(staff)
    text = TEMPLATE.render(
        plan=plan,
        step=step,
        seconds=seconds,
        threads=requests(step, seconds),
        path=path,
        rows=_documents(plan, step) if step.kind == "extract" else None,
        added=ADDED.decode(),
        hacs=[endpoints.extract(staff) for staff in step.hacs],
        page=page,
        token="WAYMARK_TOKEN" in os.environ,
    )
    file.write_text(text)
    return file


def _documents(plan: Plan, step: Step) -> int:
    """Return how many documents there are of those whom a step reads."""
    before = plan.steps[: plan.steps.index(step) + 1]
    stored = (preload for earlier in before for preload in earlier.preload)
    return sum(count for staff, count in stored if staff in step.staff)
