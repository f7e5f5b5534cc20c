import type { HttpTransport } from "./http-transport.ts";

/** How often one kind of answer came. */
export interface RequestCount {
  method: string;
  /** Host and port of the API server. */
  host: string;
  /** HTTP status, or `<error>` when no answer came. */
  code: string;
  total: number;
}

/** Counts the requests of one client by their answers. */
export interface RequestCounts {
  add(method: string, host: string, code: string): void;
  list(): readonly RequestCount[];
}

/** Creates counts that start at nothing. */
export function createRequestCounts(): RequestCounts {
  const counts = new Map<string, RequestCount>();
  return {
    add(method, host, code) {
      const key = `${method} ${host} ${code}`;
      const known = counts.get(key);
      if (known) known.total += 1;
      else counts.set(key, { method, host, code, total: 1 });
    },
    list: () => [...counts.values()],
  };
}

/** The same transport, with each of its requests counted, repeated ones too. */
export function countRequests(transport: HttpTransport, host: string, counts: RequestCounts): HttpTransport {
  return {
    async send(request, options) {
      try {
        const answer = await transport.send(request, options);
        counts.add(request.method, host, String(answer.status));
        return answer;
      } catch (error) {
        counts.add(request.method, host, "<error>");
        throw error;
      }
    },
    close: () => transport.close(),
  };
}
