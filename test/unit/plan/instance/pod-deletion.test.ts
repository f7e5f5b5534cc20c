import { expect, test } from "vitest";
import { isBeingDeleted, isDeletedByForce, type OwnPod } from "../../../../src/plan/instance/pod-deletion.ts";

test.each<{ about: string; pod: OwnPod; forced: boolean; leaves?: boolean }>([
  { about: "nobody knows", pod: { kind: "unknown" }, forced: false },
  { about: "the object is gone", pod: { kind: "gone" }, forced: true },
  {
    about: "another pod has the name",
    pod: { kind: "found", uid: "other", deletionGraceSeconds: undefined },
    forced: true,
  },
  { about: "the pod stays", pod: { kind: "found", uid: "me", deletionGraceSeconds: undefined }, forced: false },
  {
    about: "deleted with time to stop",
    pod: { kind: "found", uid: "me", deletionGraceSeconds: 1800 },
    forced: false,
    leaves: true,
  },
  { about: "deleted at once", pod: { kind: "found", uid: "me", deletionGraceSeconds: 0 }, forced: true, leaves: true },
  {
    about: "deleted with a second",
    pod: { kind: "found", uid: "me", deletionGraceSeconds: 1 },
    forced: true,
    leaves: true,
  },
])("a pod that is stopped: $about", ({ pod, forced, leaves = false }) => {
  expect(isDeletedByForce(pod, "me")).toBe(forced);
  expect(isBeingDeleted(pod, "me")).toBe(leaves);
});
