import { readFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { paths, ports } from "../api/constants.ts";

interface Answer {
  status: number;
  body: string;
}

function get(url: URL, ca: string | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { signal: AbortSignal.timeout(30_000), agent: false as const };
    const handle = (response: import("node:http").IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("error", reject);
    };
    const request =
      url.protocol === "https:"
        ? httpsRequest(
            url,
            {
              ...options,
              ...(ca === undefined ? {} : { ca }),
              minVersion: "TLSv1.3",
              checkServerIdentity: () => undefined,
            },
            handle,
          )
        : httpRequest(url, options, handle);
    request.on("error", reject);
    request.end();
  });
}

/** `instance status`: prints what the running manager answers. */
export async function statusCommand(environment: Readonly<Record<string, string | undefined>>): Promise<string> {
  const scratch = environment["CNPG_TS_ROOT"] || paths.scratch;
  const port = environment["CNPG_TS_STATUS_PORT"] || String(ports.status);
  const ca = await readFile(`${scratch}/certificates/server-ca.crt`, "utf8").catch(() => undefined);
  let answer: Answer;
  try {
    answer = await get(new URL(`https://localhost:${port}/pg/status`), ca);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    // The server speaks plain HTTP when the pod was started without TLS.
    if (!code.startsWith("ERR_SSL") && code !== "EPROTO") throw error;
    answer = await get(new URL(`http://localhost:${port}/pg/status`), undefined);
  }
  if (answer.status !== 200) throw new Error(`the instance answered ${answer.status}: ${answer.body}`);
  return answer.body;
}
