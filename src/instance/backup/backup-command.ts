import { ports } from "../../api/constants.ts";

/** Longest wait for the answer: the start reads two objects, the backup itself runs on its own. */
const limitMs = 30_000;

/** `backup NAME`: has the resident manager start the Backup; gives its answer's text and fails unless it was accepted. */
export async function backupCommand(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const port = environment["CNPG_TS_LOCAL_PORT"] || String(ports.localWeb);
  const url = `http://127.0.0.1:${port}/pg/backup?name=${encodeURIComponent(name)}`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(limitMs) });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`Backup ${name} was not started (${answer.status}): ${text}`);
  return text;
}
