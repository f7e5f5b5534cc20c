import { expect, test } from "vitest";
import { waitForServer } from "../../../src/instance/bootstrap/join.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

function world() {
  const clock = createFakeClock();
  const context = { clock, logger: captureLogs().logger, settings: { primaryPort: 5432 } };
  return { clock, context: context as unknown as InstanceContext };
}

test("a join waits for the primary, but not for good, and says what to look at", async () => {
  const { clock, context } = world();
  let asked = 0;
  const isThere = () => Promise.reject(new Error(`refused ${++asked}`));
  const waiting = waitForServer(context, "c-rw", { limitMs: 60_000, isThere }).catch((error: Error) => error);
  await clock.advance(59_000);
  expect(clock.sleeping).toBe(1);
  await clock.advance(10_000);
  const error = await waiting;
  expect(error).toMatchObject({
    message: expect.stringMatching(/^c-rw could not be reached for 60 s \(spec\.startDelay\): check .* Service/),
    cause: { message: `refused ${asked}` },
  });
});

test("a primary that comes late is not missed", async () => {
  const { clock, context } = world();
  const isThere = () => (clock.monotonicMs() < 30_000 ? Promise.reject(new Error("refused")) : Promise.resolve());
  const waiting = waitForServer(context, "c-rw", { limitMs: 60_000, isThere });
  await clock.advance(36_000);
  await waiting;
});
