/** What a request to the profiler asks for. */
export type ProfileRequest =
  | { kind: "index" }
  | { kind: "moved"; location: string }
  | { kind: "cpu"; seconds: number }
  | { kind: "heap"; collectFirst: boolean }
  | { kind: "refused"; status: number; message: string };

/** Path below which the profiles are, as Go's programs have it. */
export const profilesPath = "/debug/pprof/";

/** Length of a CPU profile that is asked for without one. */
const usualSeconds = 30;
const mostSeconds = 600;

/** Reads a request; `url` is its target with the query. */
export function parseProfileRequest(method: string, url: string): ProfileRequest {
  const [pathname = "", query] = url.split("?", 2);
  const asked = new URLSearchParams(query);
  if (`${pathname}/` === profilesPath) return { kind: "moved", location: profilesPath };
  const name = pathname.startsWith(profilesPath) ? pathname.slice(profilesPath.length) : undefined;
  if (name !== "" && name !== "profile" && name !== "heap") {
    const message = `There is no such profile: ${profilesPath} lists those that there are.`;
    return { kind: "refused", status: 404, message };
  }
  if (method !== "GET") return { kind: "refused", status: 405, message: "Profiles are only read: use GET." };
  const seconds = asked.get("seconds");
  switch (name) {
    case "":
      return { kind: "index" };
    case "profile":
      return parseCpu(seconds);
    case "heap": {
      const message = "A heap profile tells what is in use now: take two and compare them with pprof's -diff_base.";
      if (seconds !== null) return { kind: "refused", status: 400, message };
      return { kind: "heap", collectFirst: Number(asked.get("gc") ?? 0) > 0 };
    }
  }
}

function parseCpu(text: string | null): ProfileRequest {
  const seconds = text === null ? usualSeconds : Number(text);
  if (seconds > 0 && seconds <= mostSeconds) return { kind: "cpu", seconds };
  const message = `seconds is "${text}": it must be more than 0 and at most ${mostSeconds}.`;
  return { kind: "refused", status: 400, message };
}
