const redacted = "[redacted]";
const secretKeys =
  /^(password|passwd|pgpassword|token|bearertoken|authorization|secretaccesskey|aws_secret_access_key|accesskey|privatekey|tls\.key|ca\.key|clientkey|connectionstring|sastoken|storagekey|stringdata)$/i;
const credentialsInUri = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@/]+@/gi;

/** Prepares a field for JSON: errors as text, big values bounded in kind, secrets never. */
export function formatLogValue(key: string, value: unknown): unknown {
  if (secretKeys.test(key) && value !== undefined && value !== null && value !== "") return redacted;
  return format(value, 0);
}

/** One line that tells what failed and why: the messages along the chain of causes. */
export function formatErrorText(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current !== undefined && current !== null && depth < 8; depth++) {
    const text = current instanceof Error ? messageOf(current) : describe(current);
    // Wrappers often repeat the text of their cause.
    if (text && !parts.some((part) => part.includes(text))) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return maskCredentials(parts.join(": ")) || "unknown error";
}

function messageOf(error: Error): string {
  if (error.message) return error.message;
  // Node's AggregateError of a failed connect has no message of its own.
  if (error instanceof AggregateError) return error.errors.map(formatErrorText).join("; ");
  return String((error as NodeJS.ErrnoException).code ?? error.name);
}

function describe(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

function maskCredentials(text: string): string {
  return text.includes("://") ? text.replace(credentialsInUri, `$1:${redacted}@`) : text;
}

function format(value: unknown, depth: number): unknown {
  if (value instanceof Error) return formatErrorText(value);
  switch (typeof value) {
    case "string":
      return maskCredentials(value);
    case "bigint":
      return value.toString();
    case "function":
    case "symbol":
      return String(value);
    case "object":
      return value === null ? null : formatObject(value, depth);
    default:
      return value;
  }
}

function formatObject(value: object, depth: number): unknown {
  if (depth > 12) return "[too deep]";
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (value instanceof Map) return formatObject(Object.fromEntries(value), depth);
  if (value instanceof Set) return formatObject([...value], depth);
  if (Array.isArray(value)) return value.map((item) => format(item, depth + 1));
  const isSecret = (value as { kind?: unknown }).kind === "Secret";
  const result: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const hide = (isSecret && (key === "data" || key === "stringData")) || (secretKeys.test(key) && item);
    result[key] = hide ? redacted : format(item, depth + 1);
  }
  return result;
}
