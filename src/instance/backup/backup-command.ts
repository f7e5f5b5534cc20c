import { ports } from "../../api/constants.ts";

/** Longest wait for the answer: the start reads two objects, the backup itself runs on its own. */
const limitMs = 25_000;
const pauseMs = 500;

/**
 * `backup NAME`: has the resident manager start the Backup; gives its answer's text and fails unless it was accepted. A manager that
 * does not answer is asked again: it may just be replaced by another version, and it takes a Backup once however often it is asked.
 */
export async function backupCommand(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const port = environment["CNPG_TS_LOCAL_PORT"] || String(ports.localWeb);
  const url = `http://127.0.0.1:${port}/pg/backup?name=${encodeURIComponent(name)}`;
  const end = AbortSignal.timeout(limitMs);
  for (;;) {
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(url, { signal: end });
      text = await answer.text();
    } catch (error) {
      if (!end.aborted) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      if (!end.aborted) continue;
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new Error(`Backup ${name} was not started: the instance manager did not answer at port ${port}: ${cause}`);
    }
    if (answer.status !== 200) throw new Error(`Backup ${name} was not started (${answer.status}): ${text}`);
    return text;
  }
}
