"""All that lives as long as the process, assembled once: who is made of what, by subject."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from flask import current_app

from ingest.access.access_cache import AccessCache
from ingest.access.admission import Admission
from ingest.access.attempts import Attempts, Throttle
from ingest.access.devices import Devices
from ingest.access.login import Login
from ingest.access.passwords import Passwords
from ingest.access.sessions import Sessions
from ingest.config import Config
from ingest.histories.last_minutes import LastMinutes
from ingest.histories.read_through_cache import Histories
from ingest.process import service_name
from ingest.recording.back_fill import BackFill
from ingest.recording.corrections import Corrections
from ingest.recording.drain import Drain
from ingest.recording.recorder import Recorder
from ingest.recording.spool import Spool
from ingest.recording.spools import Spools
from ingest.rules.levels import Rule
from ingest.storage.access.accounts import Accounts
from ingest.storage.access.audit import Audit
from ingest.storage.access.tokens import Tokens
from ingest.storage.database.availability import Availability
from ingest.storage.database.client import Client
from ingest.storage.database.cluster_usage import Cluster
from ingest.storage.database.indexes import Indexes
from ingest.storage.detections.arrivals import Arrivals
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.inserts import Inserts
from ingest.storage.detections.large_ids import LargeIds
from ingest.storage.detections.states import States
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Directory as DirectoryCache
from ingest.storage.directory.directory import Snapshot
from ingest.storage.directory.past_places import PastPlaces
from ingest.storage.histories.change_stream import ChangeStream
from ingest.storage.people.deleted import Deleted
from ingest.storage.people.last_positions import LastPositions
from ingest.storage.people.latest import Latest
from ingest.storage.people.lost_contacts import LostContacts
from ingest.storage.people.notes import Notes
from ingest.storage.places.coverage import Coverage
from ingest.storage.places.visits import Visits

if TYPE_CHECKING:
    from ingest.access.oidc import Oidc


class Database(NamedTuple):
    """The connection, whether it answers, and how full it is."""

    client: Client
    availability: Availability
    indexes: Indexes
    cluster: Cluster


class Directory(NamedTuple):
    """The beacons as they are stored, what is known of them here, and their past."""

    beacons: Beacons
    cache: DirectoryCache
    corrections: Corrections


class People(NamedTuple):
    """Who was heard last, and where."""

    latest: Latest
    notes: Notes
    last_positions: LastPositions
    lost_contacts: LostContacts


class Places(NamedTuple):
    """Which places were visited, and by whom."""

    coverage: Coverage
    visits: Visits


class PastDetections(NamedTuple):
    """What was stored, and what changes."""

    detections: Detections
    states: States
    cache: Histories
    last_minutes: LastMinutes
    change_stream: ChangeStream


class Recording(NamedTuple):
    """What takes detections in."""

    spools: Spools
    recorder: Recorder
    drain: Drain
    back_fill: BackFill


class Access(NamedTuple):
    """Who may come in."""

    tokens: Tokens
    accounts: Accounts
    audit: Audit
    passwords: Passwords
    attempts: Attempts
    throttle: Throttle
    login: Login
    oidc: "Oidc | None"
    sessions: Sessions
    devices: Devices
    cache: AccessCache
    admission: Admission


class Context(NamedTuple):
    """What the endpoints work with, by subject."""

    service_name: str
    database: Database
    directory: Directory
    people: People
    places: Places
    histories: PastDetections
    recording: Recording
    access: Access

    @classmethod
    def assemble(cls, config: Config) -> "Context":
        """Make everything, one for each worker process: the driver is not fork-safe.

        It needs no MongoDB: the connection is made when it is first used.
        """
        client = Client(config)
        latest = Latest(client.latest)
        availability = Availability(client, latest)
        database = Database(client, availability, Indexes(client.staff), Cluster(client.staff))
        directory = _directory(config, database)
        people = _people(config, database, latest)
        histories = _histories(database, latest)
        context = cls(
            service_name=service_name(config.spool_file),
            database=database,
            directory=directory,
            people=people,
            places=Places(Coverage(client.staff), Visits(client.staff)),
            histories=histories,
            recording=_recording(config, database, directory, people, histories),
            access=_access(config, database),
        )
        database.indexes.start(_insert_seconds(config))
        if not context.access.admission.open:
            context.access.cache.start()
        return context

    def close(self) -> None:
        """Stop the threads, then close the spools and the connection."""
        self.recording.back_fill.close()
        self.people.notes.close()
        self.access.cache.close()
        self.database.indexes.close()
        self.recording.drain.close()
        self.recording.recorder.close()
        self.histories.cache.close()
        self.histories.last_minutes.close()
        self.people.last_positions.close()
        self.directory.cache.close()
        self.recording.spools.close()
        self.database.client.close()

    def directory_snapshot(self) -> Snapshot:
        """Return the directory, if possible from memory while a shard is away.

        Raises StoreUnavailable: it was never read.
        """
        snapshot = self.directory.cache.cached()
        if snapshot and self.database.availability.degraded:
            return snapshot
        self.database.availability.check_reachable()
        return self.directory.cache.current()


def get_context() -> Context:
    """Return the context of the current application."""
    return cast(Context, current_app.extensions["context"])


def _directory(config: Config, database: Database) -> Directory:
    beacons = Beacons(database.client.database)
    past_places = PastPlaces(database.client.staff)
    return Directory(
        beacons,
        DirectoryCache(beacons, config.directory_refresh_seconds),
        Corrections(past_places, beacons, _insert_seconds(config)),
    )


def _people(config: Config, database: Database, latest: Latest) -> People:
    rule = Rule(
        hits=config.level_hits,
        window_seconds=config.level_window_seconds,
        margin_db=config.level_margin_db,
        silence_seconds=config.level_silence_seconds,
    )
    notes = Notes(database.client.database, latest)
    last_positions = LastPositions(latest, notes, rule, database.availability.any_answers)
    return People(latest, notes, last_positions, LostContacts(database.client.database))


def _histories(database: Database, latest: Latest) -> PastDetections:
    staff = database.client.staff
    detections, states = Detections(staff), States(staff, latest)
    availability = database.availability
    cache = Histories(detections, states, availability.check_reachable, availability.check_shard_of)
    last_minutes = LastMinutes(detections, Arrivals(database.client.database), cache.make_room)
    return PastDetections(detections, states, cache, last_minutes, ChangeStream(staff))


def _recording(
    config: Config,
    database: Database,
    directory: Directory,
    people: People,
    histories: PastDetections,
) -> Recording:
    staff = database.client.staff
    inserts, availability = Inserts(staff), database.availability
    spool_file = Path(config.spool_file)
    spools = Spools(Spool(spool_file, config.spool_max_detections), spool_file)
    recorder = Recorder(availability, inserts, directory.cache, spools, _insert_seconds(config))
    back_fill = BackFill(
        histories.detections,
        inserts,
        people.latest,
        Deleted(histories.detections, inserts, people.latest, people.lost_contacts),
        LargeIds(staff, database.client.latest),
    )
    return Recording(spools, recorder, Drain(availability, recorder, spools), back_fill)


def _access(config: Config, database: Database) -> Access:
    tokens, accounts = Tokens(database.client.database), Accounts(database.client.database)
    passwords, sessions = Passwords(), Sessions(config.session_key_file)
    attempts = Attempts()
    cache = AccessCache(tokens, accounts, Path(config.spool_file).with_suffix(".access.json"))
    admission = Admission(config, cache, sessions)
    return Access(
        tokens=tokens,
        accounts=accounts,
        audit=Audit(database.client.database),
        passwords=passwords,
        attempts=attempts,
        throttle=Throttle(),
        login=Login(accounts, passwords, attempts, database.availability, cache, admission),
        oidc=_oidc(config),
        sessions=sessions,
        devices=Devices(sessions),
        cache=cache,
        admission=admission,
    )


def _oidc(config: Config) -> "Oidc | None":
    """Return the log-ins by a provider: imported only where there is one, for it takes MiB."""
    if not config.oidc_issuer:
        return None
    from ingest.access.oidc import Oidc

    return Oidc(config)


def _insert_seconds(config: Config) -> float:
    return config.mongodb_timeout_ms / 1000
