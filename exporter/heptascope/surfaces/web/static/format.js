// Numbers for people, the same as the server's `units`: base units in, short text out.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const SI = ["", "k", "M", "G", "T", "P", "E"];
const TIMES = [[172800, 86400, "d"], [7200, 3600, "h"], [120, 60, "min"], [1, 1, "s"], [1e-3, 1e-3, "ms"], [0, 1e-6, "µs"]];
const SI_UNITS = { watts: "W", joules: "J", hertz: "Hz", "B/s": "B/s", "FLOP/s": "FLOP/s" };
const EXACT_BELOW = 1e7;

/** Returns three significant digits at most, without trailing zeros. */
export function significant(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return value.toFixed(0);
  if (size < 0.01) return value > 0 ? "<0.01" : ">-0.01";
  return String(Number(value.toFixed(size >= 10 ? 1 : 2)));
}

function scaled(value, base, prefixes, unit) {
  let power = 0;
  while (Math.abs(value) >= base && power < prefixes.length - 1) { value /= base; power += 1; }
  return significant(value) + " " + prefixes[power] + unit;
}

function count(value) {
  if (Math.abs(value) >= EXACT_BELOW) return scaled(value, 1000, SI, "").trim();
  if (Math.abs(value) >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return significant(value);
}

/** Returns a duration in seconds as text. */
export function duration(value) {
  if (value === 0) return "0 s";
  const [, size, unit] = TIMES.find(([from]) => Math.abs(value) >= from);
  return significant(value / size) + " " + unit;
}

/** Returns a value in its base unit as text. */
export function text(value, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (unit === "ratio") return significant(value * 100) + " %";
  if (unit === "seconds") return duration(value);
  if (unit === "bytes") return scaled(value, 1024, BINARY, "");
  if (unit === "celsius") return significant(value) + " °C";
  if (SI_UNITS[unit]) return scaled(value, 1000, SI, SI_UNITS[unit]);
  return unit ? count(value) + " " + unit : count(value);
}

/** Returns a rate per second as text. */
export function rate(value, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (unit === "seconds") return text(value, "ratio");
  if (unit === "joules") return text(value, "watts");
  if (unit === "bytes") return text(value, "B/s");
  return unit ? count(value) + " " + unit + "/s" : count(value) + "/s";
}

/** Returns a value of a chart as text. */
export const shown = (value, chart) => (chart.rate ? rate : text)(value, chart.unit);

const pad = (n) => String(n).padStart(2, "0");

/** Returns the local time of Unix seconds, as hours, minutes and seconds. */
export function clock(t) {
  const d = new Date(t * 1000);
  return pad(d.getHours()) + ":" + pad(d.getMinutes()) + ":" + pad(d.getSeconds());
}

/** Returns the same in UTC, with the date. */
export const utc = (t) => new Date(t * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";

/** Returns how long ago, in whole units. */
export function ago(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  return s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
}
