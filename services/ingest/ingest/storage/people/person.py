"""A person: what the id of a phone's bearer stands for."""

from typing import NamedTuple

from ingest.rules.request_parameters import StaffId

MAX_NOTE = 256


class Person(NamedTuple):
    """One person; `team` is "" for nobody's."""

    staff_id: StaffId
    name: str
    team: str = ""
    note: str = ""
    on_duty: bool = True
