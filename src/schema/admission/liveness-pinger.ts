/** What the (superseded) annotation says about the isolation check; timeouts in milliseconds. */
export interface LivenessPinger {
  enabled: boolean;
  requestTimeout: number;
  connectionTimeout: number;
}

/** Reads the annotation: `undefined` when it is absent, an error when it is not understood. */
export function parseLivenessPinger(text: string | undefined): LivenessPinger | { error: string } | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
  if (typeof value !== "object" || value === null) return { error: "not a JSON object" };
  const { enabled, requestTimeout, connectionTimeout } = value as Record<string, unknown>;
  if (typeof enabled !== "boolean") return { error: "pinger config is missing the enabled field" };
  const milliseconds = (field: unknown) => (typeof field === "number" && field > 0 ? field : 1000);
  return {
    enabled,
    requestTimeout: milliseconds(requestTimeout),
    connectionTimeout: milliseconds(connectionTimeout),
  };
}
