"""All that lives as long as the process, assembled once."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from flask import current_app

from common import schema
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
from ingest.storage.directory.directory import Directory, Snapshot
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


class Context(NamedTuple):
    """What the endpoints work with."""

    service_name: str
    client: Client
    availability: Availability
    detections: Detections
    coverage: Coverage
    visits: Visits
    latest: Latest
    notes: Notes
    states: States
    last_positions: LastPositions
    lost_contacts: LostContacts
    change_stream: ChangeStream
    cluster: Cluster
    beacons: Beacons
    directory: Directory
    spools: Spools
    recorder: Recorder
    drain: Drain
    histories: Histories
    indexes: Indexes
    last_minutes: LastMinutes
    back_fill: BackFill
    corrections: Corrections
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
    access_cache: AccessCache
    admission: Admission

    @classmethod
    def assemble(cls, config: Config) -> "Context":
        """Make everything, one for each worker process: the driver is not fork-safe.

        It needs no MongoDB: the connection is made when it is first used.
        """
        client = Client(config)
        staff = client.database[schema.STAFF.name]
        insert_seconds = config.mongodb_timeout_ms / 1000
        detections, latest = Detections(staff), Latest(client.database[schema.LATEST.name])
        inserts, notes = Inserts(staff), Notes(client.database, latest)
        states = States(staff, latest)
        availability = Availability(client, latest)
        beacons = Beacons(client.database)
        directory = Directory(beacons, config.directory_refresh_seconds)
        spool_file = Path(config.spool_file)
        spools = Spools(Spool(spool_file, config.spool_max_detections), spool_file)
        recorder = Recorder(availability, inserts, directory, spools, insert_seconds)
        rule = Rule(
            hits=config.level_hits,
            window_seconds=config.level_window_seconds,
            margin_db=config.level_margin_db,
            silence_seconds=config.level_silence_seconds,
        )
        lost_contacts = LostContacts(client.database)
        last_positions = LastPositions(latest, notes, rule, availability.any_answers)
        tokens, accounts = Tokens(client.database), Accounts(client.database)
        passwords, sessions = Passwords(), Sessions(config.session_key_file)
        attempts = Attempts()
        access_cache = AccessCache(tokens, accounts, spool_file.with_suffix(".access.json"))
        admission = Admission(config, access_cache, sessions)
        histories = Histories(
            detections, states, availability.check_reachable, availability.check_shard_of
        )
        context = cls(
            service_name=service_name(config.spool_file),
            client=client,
            availability=availability,
            detections=detections,
            coverage=Coverage(staff),
            visits=Visits(staff),
            latest=latest,
            notes=notes,
            states=states,
            last_positions=last_positions,
            lost_contacts=lost_contacts,
            change_stream=ChangeStream(staff),
            cluster=Cluster(staff),
            beacons=beacons,
            directory=directory,
            spools=spools,
            recorder=recorder,
            drain=Drain(availability, recorder, spools),
            histories=histories,
            indexes=Indexes(staff),
            last_minutes=LastMinutes(detections, Arrivals(client.database), histories.make_room),
            back_fill=BackFill(
                detections,
                inserts,
                latest,
                Deleted(detections, inserts, latest, lost_contacts),
                LargeIds(staff, client.database[schema.LATEST.name]),
            ),
            corrections=Corrections(PastPlaces(staff), beacons, insert_seconds),
            tokens=tokens,
            accounts=accounts,
            audit=Audit(client.database),
            passwords=passwords,
            attempts=attempts,
            throttle=Throttle(),
            login=Login(accounts, passwords, attempts, availability, access_cache, admission),
            oidc=_oidc(config),
            sessions=sessions,
            devices=Devices(sessions),
            access_cache=access_cache,
            admission=admission,
        )
        context.indexes.start(insert_seconds)
        if not context.admission.open:
            access_cache.start()
        return context

    def close(self) -> None:
        """Stop the threads, then close the spools and the connection."""
        self.back_fill.close()
        self.notes.close()
        self.access_cache.close()
        self.indexes.close()
        self.drain.close()
        self.recorder.close()
        self.histories.close()
        self.last_minutes.close()
        self.last_positions.close()
        self.directory.close()
        self.spools.close()
        self.client.close()

    def directory_snapshot(self) -> Snapshot:
        """Return the directory, if possible from memory while a shard is away.

        StoreUnavailable: it was never read.
        """
        snapshot = self.directory.cached()
        if snapshot and self.availability.degraded:
            return snapshot
        self.availability.check_reachable()
        return self.directory.current()


def _oidc(config: Config) -> "Oidc | None":
    """Return the log-ins by a provider: imported only where there is one, for it takes MiB."""
    if not config.oidc_issuer:
        return None
    from ingest.access.oidc import Oidc

    return Oidc(config)


def get_context() -> Context:
    """Return the context of the current application."""
    return cast(Context, current_app.extensions["context"])
