/** Whether a value is an object with keys. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two values are the same data; the order of keys does not count. */
export function isSameData(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isSameData(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return a === b;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSameData(a[name], b[name]))
  );
}

/** Path of a field, as errors name it: `spec.externalClusters[0].name`; keys that are no names stand in brackets. */
export function joinPath(parent: string, step: string | number): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  if (!/^[A-Za-z_$][\w$-]*$/.test(step)) return `${parent}[${step}]`;
  return parent === "" ? step : `${parent}.${step}`;
}
