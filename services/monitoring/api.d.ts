// What the services answer, as the page reads it: the schemas of /api/v1/openapi.json, and the
// health monitor's report (health_monitor.py). For the type check only.

/** An error of the API. */
interface Problem {
  /** stable, such as `not_found` */
  code?: string;
  title?: string;
  detail?: string;
  error?: string;
  errors?: { line?: number; field?: string; reason: string }[];
}

/** Where somebody was heard last. Times in unix seconds. */
interface StaffMember {
  staff_id: string | number;
  timestamp: number;
  age_seconds: number;
  level: string | null;
  location: string;
  mac: string;
  rssi?: number | null;
  known?: boolean;
  /** only where the phone's clock is known to be wrong; positive: it is behind */
  clock_skew_seconds?: number;
  lost_contact?: SaidOfLost | null;
}

/** What the office says of whoever has a staff id. */
interface NamedPerson {
  staff_id: string | number;
  name: string;
  /** "": none */
  team: string;
  note: string;
  on_duty: boolean;
}

/** Who was heard, and has no name. */
interface UnnamedPerson {
  staff_id: string | number;
  last_heard: number;
}

interface UnnamedAnswer {
  data: UnnamedPerson[];
  truncated?: boolean;
}

/** What somebody said of who is not heard any more. */
interface SaidOfLost {
  state: "acknowledged" | "gone_home";
  by: string;
  at: number;
}

interface StaffAnswer {
  as_of: number;
  /** false: a part of the database does not answer, and its people are missing */
  complete?: boolean;
  data: StaffMember[];
}

interface Beacon {
  mac: string;
  level: string;
  location: string;
  /** metres */
  x: number | null;
  y: number | null;
  /** its other ids */
  aliases?: string[];
}

interface BeaconsAnswer {
  data: Beacon[];
}

interface UnknownBeacon {
  mac: string;
  count: number;
  staff?: (string | number)[];
  last_heard: number;
}

interface UnknownAnswer {
  data: UnknownBeacon[];
  truncated?: boolean;
}

/** Times in unix seconds. */
interface Battery {
  value: number;
  unit: string;
  at: number;
  /** the share that is left */
  left: number;
  /** null: too few days for a trend */
  per_day: number | null;
  /** null: by no trend, or in many years */
  empty_at: number | null;
  low: boolean;
}

interface BeaconBattery {
  mac: string;
  battery: Battery | null;
}

interface BatteriesAnswer {
  /** the battery to change next first */
  data: BeaconBattery[];
}

interface ImportAnswer extends Problem {
  added?: number;
  changed?: number;
  unchanged?: number;
  moves?: { before: Beacon; after: Beacon }[];
  warnings?: string[];
}

interface PeopleImportAnswer extends Problem {
  changed?: number;
  changes?: { before: NamedPerson; after: NamedPerson }[];
}

interface Detection {
  timestamp: number;
  level: string;
  location: string;
  mac: string;
  x?: number | null;
  y?: number | null;
}

interface HistoryAnswer {
  data: Detection[];
  next?: string | null;
}

/** Somebody at a place; unix seconds. */
interface VisitAnswer {
  staff_id: string | number;
  level: string;
  from: number;
  to: number;
  detections: number;
}

interface VisitsAnswer {
  data: VisitAnswer[];
  next?: string | null;
}

/** A location of the directory, and when somebody was there last. */
interface CoveredLocation {
  level: string;
  location: string;
  x: number | null;
  y: number | null;
  macs: string[];
  /** the other ids of these beacons */
  aliases?: string[];
  registered_at?: number | null;
  last_visited: number | null;
}

interface CoverageAnswer {
  complete?: boolean;
  data: CoveredLocation[];
}

type CircuitState = "closed" | "half-open" | "busy" | "open" | "unknown";

/** One circuit of the gateway. */
interface CircuitReport {
  state: CircuitState;
  since: number;
  detail: string;
}

interface MemoryReport {
  used_bytes: number | null;
  limit_bytes: number | null;
}

interface DatabaseHealth {
  reachable: boolean;
  /** whether all shards answer */
  complete?: boolean;
  latency_ms?: number | null;
}

interface ServiceReport {
  name: string;
  answers: boolean;
  since: number;
  seen_at: number;
  latency_ms: number;
  queued: number | null;
  /** what was damaged or refused in its spool: rows, or whole files */
  set_aside: number;
  warnings: OperatorWarning[];
  memory: MemoryReport | null;
  mongodb: DatabaseHealth | null;
  /** what iPhones sent since its start; null: it is off, or not told yet */
  owntracks: { stored: number; ignored: Record<string, number> } | null;
}

/** One read of the health monitor; null: it failed. */
interface Read {
  timestamp: number;
  latency_ms: number | null;
}

/** What does not work; what still does, and what to do; what waits in the spools. */
interface Verdict {
  what: string;
  rest: string;
  kept: string;
  /** unix seconds */
  since: number;
}

/** What an operator has to see to. */
interface OperatorWarning {
  what: string;
  todo: string;
}

interface SystemReport {
  now: number;
  verdict: Verdict | null;
  circuits: { ingest: CircuitReport; reads: CircuitReport };
  services: ServiceReport[];
  /** those of the gateway */
  warnings: OperatorWarning[];
  monitoring: { memory: MemoryReport };
  reads: Read[];
}

interface ShardReport {
  name: string;
  documents: number;
  sealed: number;
  bytes: number;
  index_bytes: number;
}

/** Null is what cannot be told yet. */
interface StorageReport {
  free_bytes: number;
  detection_bytes: number | null;
  sealed_bytes: number | null;
  detections_a_day: number | null;
  days_left: number | null;
  /** 0: all are kept */
  retention_days: number;
  /** 0: none is sealed */
  seal_hours: number;
  /** whether that is soon */
  low: boolean;
}

/** Times in unix seconds. */
interface BackupReport {
  scheduled: boolean;
  started_at: number;
  finished_at: number | null;
  failed: boolean;
  late: boolean;
}

interface DatabaseReport {
  as_of: number;
  shards: ShardReport[];
  minutes: { timestamp: number; count: number }[];
  storage: StorageReport | null;
  backup: BackupReport | null;
}

/** What another site told last; its answers are texts within. Times in unix seconds. */
interface SiteReport {
  name: string;
  url: string;
  /** of `staff` and `people`; null: it never told */
  staff: string | null;
  people: string | null;
  /** there are more people than it told */
  has_more: boolean;
  /** by the clock of the service that asked, and by the site's own */
  read_at: number | null;
  taken_at: number | null;
  /** "": it could be read just now */
  problem: string;
  failing_since: number | null;
}

type Details = Record<string, string | number | boolean | null>;

/** Somebody who may log in. Times in unix seconds. */
interface Person {
  name: string;
  role: string;
  /** of OpenID Connect, where they log in; without: with a password */
  provider?: string;
  created_at: number;
}

interface Token {
  id: string;
  label: string;
  role: string;
  /** of a wall screen that shows one level only */
  level?: string | number | null;
  /** of whose people alone it is told */
  team?: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  revoked_at: number | null;
}

interface NewToken extends Token {
  secret: string;
}

interface AuditEntry {
  id: string;
  at: number;
  who: string;
  kind: string;
  what: string;
  of: string;
  details: Details;
  address: string;
}

/** Newest first. */
interface AuditPage {
  next: string | null;
  data: AuditEntry[];
}
