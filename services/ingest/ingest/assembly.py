"""All that lives as long as the process, assembled once: who is made of what, by subject."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from flask import current_app

from common.metrics import Requests
from common.routes import KINDS
from ingest.access.access_cache import AccessCache
from ingest.access.admission import Admission
from ingest.access.attempts import Attempts, Throttle
from ingest.access.devices import Devices
from ingest.access.login import Login
from ingest.access.passwords import Passwords
from ingest.access.sessions import Sessions
from ingest.config import ON, Config
from ingest.histories.last_minutes import LastMinutes
from ingest.histories.read_through_cache import Histories
from ingest.process import service_name
from ingest.recording.back_fill import BackFill
from ingest.recording.corrections import Corrections
from ingest.recording.drain import Drain
from ingest.recording.erasure_list import ErasureList
from ingest.recording.expiry import Expiry
from ingest.recording.forgetting import Forget, Forgetful, Forgetting, Stored
from ingest.recording.operator_warnings import OperatorWarnings
from ingest.recording.owntracks_tally import Tally
from ingest.recording.recorder import Recorder
from ingest.recording.sealing import Sealer, Sealing
from ingest.recording.spool import Spool
from ingest.recording.spools import Spools
from ingest.recording.steady_clock import SteadyClock, Witnesses
from ingest.rules.levels import Rule
from ingest.rules.plan_origin import PlanOrigin, plan_origin
from ingest.rules.retention import Retention
from ingest.storage.access.accounts import Accounts
from ingest.storage.access.audit import Audit
from ingest.storage.access.tokens import Tokens
from ingest.storage.database.availability import Availability
from ingest.storage.database.client import Client
from ingest.storage.database.cluster_usage import Cluster
from ingest.storage.database.data_name import DataName
from ingest.storage.database.indexes import Indexes
from ingest.storage.detections.arrivals import Arrivals
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.expired import Expired
from ingest.storage.detections.inserts import Inserts
from ingest.storage.detections.large_ids import LargeIds
from ingest.storage.detections.loop_inserts import LoopInserts
from ingest.storage.detections.states import States
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Directory as DirectoryCache
from ingest.storage.directory.directory import Snapshot
from ingest.storage.directory.past_places import PastPlaces
from ingest.storage.directory.telemetry import Telemetry
from ingest.storage.histories.change_stream import ChangeStream
from ingest.storage.people.deleted import Deleted
from ingest.storage.people.last_positions import LastPositions
from ingest.storage.people.latest import Latest
from ingest.storage.people.lost_contacts import LostContacts
from ingest.storage.people.notes import Notes
from ingest.storage.people.people import People as PeopleCollection
from ingest.storage.people.people_cache import PeopleCache
from ingest.storage.places.coverage import Coverage
from ingest.storage.places.visits import Visits
from ingest.storage.sealed import damage
from ingest.storage.sealed.border import Border
from ingest.storage.sealed.sealed import Sealed

if TYPE_CHECKING:
    from ingest.access.oidc import Oidc


class Database(NamedTuple):
    """The connection, whether it answers, and how full it is."""

    client: Client
    availability: Availability
    indexes: Indexes
    cluster: Cluster


class Directory(NamedTuple):
    """The beacons as they are stored, what is known of them here, their past, what they tell."""

    beacons: Beacons
    cache: DirectoryCache
    corrections: Corrections
    telemetry: Telemetry


class People(NamedTuple):
    """Who was heard last, and where, and what people are called."""

    latest: Latest
    notes: Notes
    last_positions: LastPositions
    lost_contacts: LostContacts
    entries: PeopleCollection
    names: PeopleCache


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
    """What takes detections in, and forgets them."""

    spools: Spools
    recorder: Recorder
    drain: Drain
    back_fill: BackFill
    expiry: Expiry
    forgetting: Forgetting
    sealing: Sealing
    warnings: OperatorWarnings


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
    retention: Retention
    plan_origin: PlanOrigin | None  # None: nobody said where the plans lie
    backup_report: Path | None  # None: nobody tells of backups
    database: Database
    directory: Directory
    people: People
    places: Places
    histories: PastDetections
    recording: Recording
    access: Access
    owntracks: Tally | None  # None: it is off
    requests: Requests  # that the event loop answered, counted by kind
    spool_folder: Path

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
        retention = Retention(config.retention_days)
        people = _people(config, database, latest, retention)
        erasure_list = ErasureList(Path(config.spool_file).parent)
        histories = _histories(database, latest, retention, erasure_list)
        context = cls(
            service_name=config.ingest_name or service_name(config.spool_file),
            retention=retention,
            plan_origin=plan_origin(config.plan_origin),
            backup_report=Path(config.backup_report) if config.backup_report else None,
            database=database,
            directory=directory,
            people=people,
            places=Places(Coverage(client.staff, retention), Visits(client.staff, retention)),
            histories=histories,
            recording=_recording(
                config, database, directory, people, histories, retention, erasure_list
            ),
            access=_access(config, database),
            owntracks=Tally() if config.waymark_owntracks == ON else None,
            requests=Requests(KINDS),
            spool_folder=Path(config.spool_file).parent,
        )
        database.indexes.start(_insert_seconds(config))
        if not context.access.admission.open:
            context.access.cache.start()
        return context

    def close(self) -> None:
        """Stop the threads, then close the spools and the connection."""
        self.recording.back_fill.close()
        self.recording.expiry.close()
        self.recording.sealing.close()
        self.recording.warnings.close()
        self.people.notes.close()
        self.access.cache.close()
        self.database.indexes.close()
        self.recording.drain.close()
        self.recording.recorder.close()
        self.histories.cache.close()
        self.histories.last_minutes.close()
        self.people.last_positions.close()
        self.directory.cache.close()
        self.directory.telemetry.close()
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
        Telemetry(database.client.database, beacons),
    )


def _people(config: Config, database: Database, latest: Latest, retention: Retention) -> People:
    rule = Rule(
        hits=config.level_hits,
        window_seconds=config.level_window_seconds,
        margin_db=config.level_margin_db,
        silence_seconds=config.level_silence_seconds,
    )
    notes = Notes(database.client.database, latest)
    last_positions = LastPositions(
        latest, notes, rule, database.availability.any_answers, retention
    )
    entries = PeopleCollection(database.client.database)
    return People(
        latest,
        notes,
        last_positions,
        LostContacts(database.client.database),
        entries,
        PeopleCache(entries, database.availability.check_reachable),
    )


def _histories(
    database: Database, latest: Latest, retention: Retention, erasure_list: ErasureList
) -> PastDetections:
    staff = database.client.staff
    detections, states = Detections(staff, retention), States(staff, latest)
    availability = database.availability
    cache = Histories(
        detections,
        states,
        availability.check_reachable,
        availability.check_shard_of,
        retention,
    )
    last_minutes = LastMinutes(detections, Arrivals(database.client.database), cache.make_room)
    change_stream = ChangeStream(staff, retention, erasure_list.current)
    return PastDetections(detections, states, cache, last_minutes, change_stream)


def _recording(
    config: Config,
    database: Database,
    directory: Directory,
    people: People,
    histories: PastDetections,
    retention: Retention,
    erasure_list: ErasureList,
) -> Recording:
    staff = database.client.staff
    inserts, availability = Inserts(staff), database.availability
    spool_file = Path(config.spool_file)
    spools = Spools(Spool(spool_file, config.spool_max_detections), spool_file)
    recorder = Recorder(
        availability,
        inserts,
        LoopInserts(database.client, inserts),
        directory.cache,
        spools,
        erasure_list.current,
        _insert_seconds(config),
    )
    back_fill = BackFill(
        histories.detections,
        inserts,
        people.latest,
        Deleted(histories.detections, inserts, people.latest, people.lost_contacts),
        LargeIds(staff, database.client.latest),
    )
    caches: list[Forget] = [
        damage.forget,
        histories.cache.forget,
        people.last_positions.forget,
        lambda _: histories.last_minutes.forget(),
        lambda _: people.names.reload(),
        lambda _: people.lost_contacts.known(),
    ]
    drain = Drain(availability, recorder, spools, Forgetful(erasure_list, spools, caches))
    expired = Expired(staff)
    border = Border(database.client.database)
    skews = people.last_positions.clock_skews
    clock = SteadyClock(Witnesses(border.now, expired.any_after, skews))
    sealer = Sealer(Sealed(staff), border)
    sealing = Sealing(config.seal_hours, sealer, people.latest, expired, steady=clock)
    forgetting = Forgetting(erasure_list, Stored.of(database.client))
    expiry = Expiry(retention, expired, clock)
    read_name = partial(DataName.read, database.client.database)
    warnings = OperatorWarnings(clock, spools.own, spool_file.parent, read_name)
    return Recording(spools, recorder, drain, back_fill, expiry, forgetting, sealing, warnings)


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
