import { expect, test } from "vitest";
import { endWhenDeleted } from "../../../src/instance/own-pod.ts";
import { type KubeApi, KubeError } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

/** A pod without a server, and what the API server says of it. */
function world() {
  const clock = createFakeClock();
  const stop = new AbortController();
  const pod = { metadata: { uid: "me" } as { uid: string; deletionGracePeriodSeconds?: number } };
  const seen = { asked: 0, ended: 0, up: false, down: false };
  const get = async () => {
    seen.asked += 1;
    if (seen.down) throw new KubeError("refused", { kind: "forbidden", status: 401 });
    return pod;
  };
  const done = endWhenDeleted(
    {
      kube: { get } as unknown as Pick<KubeApi, "get">,
      namespace: "default",
      podName: "c-1",
      podUid: "me",
      clock,
      isUp: () => seen.up,
      end: () => {
        seen.ended += 1;
      },
    },
    stop.signal,
  );
  return { clock, stop, pod, seen, done };
}

test("a pod whose server came up in time asks nobody", async () => {
  const { clock, seen, done } = world();
  seen.up = true;
  await clock.advance(10_000);
  await done;
  expect(seen).toMatchObject({ asked: 0, ended: 0 });
});

test("a pod that is being deleted and has no server ends once, and not before that is known", async () => {
  const { clock, pod, seen, done } = world();
  await clock.advance(10_000);
  seen.down = true;
  await clock.advance(10_000);
  expect(seen).toMatchObject({ asked: 2, ended: 0 });
  seen.down = false;
  pod.metadata.deletionGracePeriodSeconds = 1800;
  await clock.advance(10_000);
  await done;
  expect(seen).toMatchObject({ asked: 3, ended: 1 });
});

test("the end of the manager ends the looking", async () => {
  const { stop, seen, done } = world();
  stop.abort();
  await done;
  expect(seen.ended).toBe(0);
});
