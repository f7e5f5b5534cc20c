import { expect, test } from "vitest";
import { isRefusal, type SourceConnection, waitForSource } from "../../../src/instance/bootstrap/source-connection.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

const source: SourceConnection = { name: "origin", conninfo: () => "host='db'", environment: {} };

/** A source that answers `psql` with these errors one after the other, the last one for good; an empty one means success. */
function world(...errors: string[]) {
  const clock = createFakeClock();
  let calls = 0;
  const run = () => {
    const stderr = errors[Math.min(calls++, errors.length - 1)] ?? "";
    return Promise.resolve({ code: stderr ? 2 : 0, signal: null, stdout: "", stderr });
  };
  const context = { clock, logger: captureLogs().logger, processes: { run } };
  return { clock, context: context as unknown as InstanceContext };
}

const refused = 'psql: error: connection to server at "db" failed: FATAL:  database "nowhere" does not exist';
const away = "psql: error: could not translate host name";

test("a source that keeps us out ends an import with its own words", async () => {
  const { clock, context } = world(away, refused);
  const waiting = waitForSource(context, source, { replication: false, mayRefuse: true }).catch(
    (error: Error) => error,
  );
  await clock.advance(40_000);
  expect(await waiting).toMatchObject({ message: refused });
});

test("a source that lets us in a little later is not missed, and one that never refuses is waited for", async () => {
  const late = world(refused, "");
  const waiting = waitForSource(late.context, source, { replication: false, mayRefuse: true });
  await late.clock.advance(1_000);
  await waiting;
  const copied = world(refused, refused, refused, refused, refused, refused, refused, "");
  const copying = waitForSource(copied.context, source, { replication: true });
  await copied.clock.advance(60_000);
  await copying;
});

test.each([
  [refused, true],
  ['FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "app", database "postgres", SSL encryption', true],
  ['FATAL:  password authentication failed for user "app"', true],
  ["FATAL:  the database system is starting up", false],
  ["FATAL:  the database system is not yet accepting connections", false],
  ["FATAL:  sorry, too many clients already", false],
  [away, false],
])("%s: refusal %s", (message, expected) => {
  expect(isRefusal(message)).toBe(expected);
});
