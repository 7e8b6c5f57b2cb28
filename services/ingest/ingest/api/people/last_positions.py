"""Where everybody was last heard, from the small collection `latest`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ingest.api.http import responses
from ingest.api.openapi.schema_fields import (
    Known,
    Level,
    Location,
    Mac,
    ResponseBody,
    Rssi,
    Seconds,
    StaffId,
    Time,
)
from ingest.api.people import teams
from ingest.assembly import get_context
from ingest.rules.request_parameters import RIGHT_SECONDS
from ingest.storage.directory.directory import Snapshot
from ingest.storage.people import lost_contacts
from ingest.storage.people.last_positions import LastHeard, People

# Phones report every 4 s: a minute without is a pause, a quarter of an hour an absence.
NOW_SECONDS = 60
RECENT_SECONDS = 15 * 60
# How many people are encoded at once: 50 kB.
PIECE = 250


State = Annotated[
    str,
    Meta(
        description="`acknowledged`: somebody sees to it; `gone_home`: nobody has to",
        extra_json_schema={"enum": list(lost_contacts.STATES)},
    ),
]


class LostContact(ResponseBody):
    """What became of somebody who is not heard any more."""

    state: State
    by: Annotated[str, Meta(description="Who said so")]
    at: Seconds


class LastDetection(ResponseBody):
    """Where a staff member was last heard."""

    staff_id: StaffId
    timestamp: Seconds
    time: Time
    age_seconds: Annotated[int, Meta(description="`as_of` less the time it was heard", ge=0)]
    freshness: Annotated[
        str,
        Meta(
            description=f"`now` up to {NOW_SECONDS} s, `recent` up to {RECENT_SECONDS} s, then"
            " `stale`",
            extra_json_schema={"enum": ["now", "recent", "stale"]},
        ),
    ]
    level: Level
    location: Location
    mac: Mac
    rssi: Rssi
    known: Known
    lost_contact: Annotated[
        LostContact | None,
        Meta(description="As it was said since they were heard, null where nobody did"),
    ]
    clock_skew_seconds: Annotated[
        int | UnsetType,
        Meta(
            description="Where the phone's clock is known to be wrong, by more than"
            f" {RIGHT_SECONDS} s: our clock less the phone's, so what is behind is positive. Then"
            " `timestamp` plus this is when it was heard"
        ),
    ] = UNSET


class PositionsAnswer:
    """Everybody's last detection as of a moment, to be told in pieces."""

    def __init__(
        self,
        people: People,
        directory: Snapshot,
        lost: Mapping[StaffId, lost_contacts.LostContact],
        team: str = "",
    ) -> None:
        self.staff = people.staff
        team_tag = teams.tag(team)  # before its members: who changes teams is told by the next tag
        if team:
            is_member = teams.members(team)
            self.staff = [person for person in people.staff if is_member(person.staff_id)]
        self.complete = people.complete
        self._places = directory.places
        self._lost = lost
        self._at = time.time()
        self.as_of = int(self._at)
        # Ages only grow: how many are of each freshness tells whose freshness changed.
        ages = [self._before(age) for age in (NOW_SECONDS, RECENT_SECONDS)]
        fresh = [sum(heard_at > since for heard_at in people.heard_at) for since in ages]
        self.tag = responses.tag(people.tag, fresh, directory.tag, lost, team, team_tag)

    def on(self, level: str) -> list[LastHeard]:
        """Return those who were last heard on a level, "" for everybody."""
        return (
            [person for person in self.staff if person.beacon.level == level]
            if level
            else self.staff
        )

    def present(self) -> Iterator[LastHeard]:
        """Yield those who are not stale."""
        since = self._before(RECENT_SECONDS)
        return (person for person in self.staff if person.heard_at > since)

    def texts(self, staff: Sequence[LastHeard]) -> Iterator[bytes]:
        """Yield people as JSON, with commas between them, in pieces."""
        for first in range(0, len(staff), PIECE):
            piece = [self._item(person) for person in staff[first : first + PIECE]]
            text = msgspec.json.encode(piece)[1:-1]
            yield b"," + text if first else text

    def _before(self, age_seconds: int) -> float:
        """Return until when somebody was heard who is older than that."""
        return self._at - age_seconds - 1

    def _item(self, heard: LastHeard) -> LastDetection:
        age = max(0, int(self._at - heard.heard_at))
        skew = heard.heard_at - heard.timestamp
        level, location, mac = heard.beacon
        return LastDetection(
            staff_id=heard.staff_id,
            timestamp=heard.timestamp,
            time=_iso(heard.timestamp),
            age_seconds=age,
            freshness=_freshness(age),
            level=level,
            location=location,
            mac=mac,
            rssi=heard.rssi,
            known=mac in self._places,
            clock_skew_seconds=skew if abs(skew) > RIGHT_SECONDS else UNSET,
            lost_contact=self._lost_contact(heard),
        )

    def _lost_contact(self, heard: LastHeard) -> LostContact | None:
        lost = self._lost.get(heard.staff_id)
        if lost is None or lost.timestamp != heard.timestamp:  # heard again
            return None
        return LostContact(lost.state, lost.by, lost.at)


def answer(team: str = "") -> PositionsAnswer:
    """Read everybody's last detection, or those of a team. Raises StoreUnavailable."""
    context = get_context()
    context.database.availability.check_reachable()
    return PositionsAnswer(
        context.people.last_positions.read(),
        context.directory.cache.current(),
        context.people.lost_contacts.known(),
        team,
    )


def _freshness(age_seconds: int) -> str:
    if age_seconds <= NOW_SECONDS:
        return "now"
    return "recent" if age_seconds <= RECENT_SECONDS else "stale"


_iso = lru_cache(1024)(responses.iso)  # who is here was heard within the same minutes
