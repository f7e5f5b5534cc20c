/** Null when the part is ready, otherwise why not. */
export type ReadinessCheck = () => string | null;

/** Whether a program may be sent work, as the sum of named checks. */
export interface Readiness {
  add(name: string, check: ReadinessCheck): void;
  /** `failing` maps a check's name to its reason. */
  evaluate(): { ready: boolean; failing: Record<string, string> };
}

/** Creates a readiness without checks, which is ready. */
export function createReadiness(): Readiness {
  const checks = new Map<string, ReadinessCheck>();
  return {
    add: (name, check) => void checks.set(name, check),
    evaluate() {
      const failing: Record<string, string> = {};
      for (const [name, check] of checks) {
        const reason = check();
        if (reason !== null) failing[name] = reason;
      }
      return { ready: Object.keys(failing).length === 0, failing };
    },
  };
}
