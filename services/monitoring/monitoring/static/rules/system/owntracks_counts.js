// What OwnTracks sent, added up over the services. Pure.

/**
 * @typedef {object} Count
 * @property {string} what
 * @property {number} count
 */

/**
 * What was stored, then what was ignored, the most first; none where OwnTracks is off.
 * @param {Pick<ServiceReport, "owntracks">[]} services
 * @returns {Count[]}
 */
export function owntracksCounts(services) {
  const reports = services.flatMap(({ owntracks }) => owntracks ?? []);
  if (!reports.length) return [];
  /** @type {Map<string, number>} */
  const ignored = new Map();
  for (const report of reports)
    for (const [reason, count] of Object.entries(report.ignored))
      ignored.set(reason, (ignored.get(reason) ?? 0) + count);
  const rows = [...ignored].map(([reason, count]) => ({ what: `ignored: ${reason}`, count }));
  rows.sort((row, other) => other.count - row.count || (row.what < other.what ? -1 : 1));
  const stored = reports.reduce((sum, report) => sum + report.stored, 0);
  return [{ what: "stored", count: stored }, ...rows];
}
