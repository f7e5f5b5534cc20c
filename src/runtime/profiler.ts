import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { parseProfileRequest, profilesPath } from "./profile-request.ts";
import { ProfilerBusyError, Profiles } from "./profiles.ts";
import { createServerRunnable } from "./server-runnable.ts";

export interface ProfilerOptions {
  /** @default all addresses */
  host?: string;
  port: number;
  clock: Clock;
  logger: Logger;
}

/** Does work with a server beside it that gives profiles of the process in pprof's format; what goes wrong with that is logged and no more. */
export async function withProfiler<T>(options: ProfilerOptions, work: () => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const profiler = runProfiler(options, stop.signal);
  try {
    return await work();
  } finally {
    stop.abort();
    await profiler;
  }
}

async function runProfiler(options: ProfilerOptions, signal: AbortSignal): Promise<void> {
  const { port, host, clock, logger } = options;
  const address = `${host ?? ""}:${port}`;
  const profiles = new Profiles(clock);
  try {
    await profiles.open();
    const server = createServer(listenerOf(profiles, logger));
    server.once("listening", () => logger.info("The profiler listens", { address, path: profilesPath }));
    const where = { port, ...(host === undefined ? {} : { host }) };
    // Nobody waits for the rest of a profile when the program ends.
    await createServerRunnable({ name: "profiler", server, clock, drainMs: 0, ...where }).run(signal);
  } catch (error) {
    logger.error("There is no profiler", { address, error });
  } finally {
    profiles.close();
  }
}

function listenerOf(profiles: Profiles, logger: Logger): RequestListener {
  return (request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    answer(profiles, request.method ?? "", request.url ?? "", response, gone.signal).catch((error: unknown) => {
      if (gone.signal.aborted) return;
      const isBusy = error instanceof ProfilerBusyError;
      if (!isBusy) logger.error("A profile could not be taken", { error });
      sendText(response, isBusy ? 409 : 500, error instanceof Error ? error.message : String(error));
    });
  };
}

async function answer(
  profiles: Profiles,
  method: string,
  url: string,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const asked = parseProfileRequest(method, url);
  switch (asked.kind) {
    case "index":
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(index);
      return;
    case "moved":
      response.writeHead(301, { location: asked.location }).end();
      return;
    case "refused":
      sendText(response, asked.status, asked.message);
      return;
    case "cpu":
      return sendProfile(response, "profile", await profiles.takeCpu(asked.seconds * 1_000, signal));
    case "heap":
      return sendProfile(response, "heap", await profiles.takeHeap(asked));
    default:
      asked satisfies never;
  }
}

function sendProfile(response: ServerResponse, name: string, profile: Uint8Array): void {
  const disposition = `attachment; filename="${name}"`;
  response
    .writeHead(200, { "content-type": "application/octet-stream", "content-disposition": disposition })
    .end(profile);
}

function sendText(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(`${message}\n`);
}

const index = `<!DOCTYPE html>
<title>Profiles</title>
<p>Profiles of this process for <code>go tool pprof URL</code>: of its JavaScript thread and of V8's heap. Other threads and
the content of buffers are not among them.</p>
<ul>
<li><a href="profile?seconds=30">profile</a>: what the processor is used for during the next <code>seconds</code></li>
<li><a href="heap">heap</a>: what is in use, by the place that asked for it; <code>gc=1</code> removes garbage first</li>
</ul>
`;
