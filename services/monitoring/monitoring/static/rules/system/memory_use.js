// Memory: in words, and as a share of its limit. Pure.

const MEGABYTE = 1024 * 1024;
const GIGABYTE = 1024 * MEGABYTE;
const FULL_SHARE = 0.9; // from here on it is shown as a warning

/** @typedef {{ used_bytes?: number | null, limit_bytes?: number | null }} Memory */

/** @param {number} bytes */
const megabytes = (bytes) => `${(bytes / MEGABYTE).toFixed(0)} MiB`;

/** @param {number} bytes */
export const sizeText = (bytes) =>
  bytes >= GIGABYTE ? `${(bytes / GIGABYTE).toFixed(1)} GiB` :
  bytes >= MEGABYTE ? `${(bytes / MEGABYTE).toFixed(1)} MiB` : `${Math.ceil(bytes / 1024)} KiB`;

/** @param {Memory | null | undefined} memory */
export function memoryText(memory) {
  const used = memory?.used_bytes;
  if (!used) return "–";
  const limit = memory.limit_bytes;
  return limit ? `${megabytes(used)} of ${megabytes(limit)}` : `${megabytes(used)}, no limit`;
}

/**
 * How full a meter is; null without a limit, when there is none to show.
 * @param {Memory | null | undefined} memory
 * @returns {{ percent: number, isFull: boolean } | null}
 */
export function meterLevel(memory) {
  const limit = memory?.limit_bytes;
  if (!limit) return null;
  const share = (memory.used_bytes ?? 0) / limit;
  return { percent: Math.min(100, share * 100), isFull: share > FULL_SHARE };
}
