const unitNanoseconds: Record<string, number> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** Reads a duration as Go writes it (`1h2m3.5s`) in milliseconds; `undefined` when it is not one. */
export function parseGoDuration(text: string): number | undefined {
  const match = /^([-+])?(.+)$/.exec(text);
  if (!match?.[2]) return undefined;
  if (match[2] === "0") return 0;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(match[2])) return undefined;
  let nanoseconds = 0;
  for (const part of match[2].matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    nanoseconds += Number(part[1]) * (unitNanoseconds[part[2] ?? ""] ?? 0);
  }
  return ((match[1] === "-" ? -1 : 1) * nanoseconds) / 1e6;
}
