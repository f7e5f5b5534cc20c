/** Major version from the content of a `PG_VERSION` file; `undefined` when it is not a version. */
export function parsePgVersionFile(text: string): number | undefined {
  const match = /^(\d+)(?:\.\d+)?\s*$/.exec(text.trim());
  return match ? Number(match[1]) : undefined;
}

/** Major version from `server_version_num`. */
export function majorOfServerVersion(serverVersionNumber: number): number {
  return Math.floor(serverVersionNumber / 10_000);
}

/** Version text as people write it (170004 is `17.4`). */
export function formatServerVersion(serverVersionNumber: number): string {
  return `${majorOfServerVersion(serverVersionNumber)}.${serverVersionNumber % 10_000}`;
}
