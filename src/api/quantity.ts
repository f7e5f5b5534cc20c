const decimalPower: Record<string, number> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binaryPower: Record<string, bigint> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };

/** A Kubernetes quantity in billionths of its unit, so that values of any notation compare; `undefined` when it is not one. */
export function parseQuantity(value: string | number): bigint | undefined {
  const match = /^([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2}|)$/.exec(String(value));
  if (!match) return undefined;
  const [, sign, digits = "", suffix = ""] = match;
  const [whole = "", fraction = ""] = digits.split(".");
  const mantissa = BigInt(`${whole}${fraction}`);
  const binary = binaryPower[suffix];
  let magnitude: bigint;
  if (binary !== undefined) {
    magnitude = divideUp((mantissa << binary) * 10n ** 9n, 10n ** BigInt(fraction.length));
  } else {
    const power = 9 - fraction.length + (decimalPower[suffix] ?? Number(suffix.slice(1)));
    magnitude = power >= 0 ? mantissa * 10n ** BigInt(power) : divideUp(mantissa, 10n ** BigInt(-power));
  }
  return sign === "-" ? -magnitude : magnitude;
}

/** -1, 0 or 1; `undefined` when one of the two is not a quantity. */
export function compareQuantities(left: string | number, right: string | number): -1 | 0 | 1 | undefined {
  const a = parseQuantity(left);
  const b = parseQuantity(right);
  if (a === undefined || b === undefined) return undefined;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Kubernetes rounds away from zero what is finer than a billionth. */
function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
