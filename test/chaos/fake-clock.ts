import { readFileSync } from "node:fs";
import { ensureAptPackages } from "../../images/apt.ts";
import { annotations } from "../../src/api/labels.ts";
import type { PlacedInstance, Scene } from "./fault.ts";
import { inInstance } from "./in-instance.ts";

// PostgreSQL's programs and the carried node are linked dynamically and so take their time from Debian's libfaketime. The
// launcher is static and keeps the machine's clock, but decides by the one since boot. LD_PRELOAD would not do: the launcher
// keeps it from the runtime. So a list of libraries that every loader looks at is mounted over the pod's.

/** ConfigMap with the library and the list that names it. */
const configMap = "fake-clock";
const folder = "/projected";
const library = "libfaketime.so.1";
const list = "ld.so.preload";
/** Where a pod reads by how much its clock is off; not there = not at all. */
const offsetFile = "/run/clock-offset";

/** Objects, annotations and fields of a Cluster whose instances have a clock that can be set. */
export async function fakeClock(namespace: string) {
  await ensureAptPackages(["libfaketime"]);
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  const text = readFileSync(`/usr/lib/${machine}-linux-gnu/faketime/${library}`).toString("base64");
  const mount = { name: "projected", mountPath: `/etc/${list}`, subPath: list, readOnly: true };
  return {
    objects: [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { namespace, name: configMap },
        data: { [list]: `${folder}/${library}\n` },
        binaryData: { [library]: text },
      },
    ],
    annotations: {
      [annotations.podPatch]: JSON.stringify([{ op: "add", path: "/spec/containers/0/volumeMounts/-", value: mount }]),
    },
    spec: {
      projectedVolumeTemplate: { sources: [{ configMap: { name: configMap } }] },
      env: [
        { name: "FAKETIME_TIMESTAMP_FILE", value: offsetFile },
        { name: "FAKETIME_CACHE_DURATION", value: "1" },
        // Only what a wrong clock of a machine would change: neither the time since boot nor the times of files.
        { name: "FAKETIME_DONT_FAKE_MONOTONIC", value: "1" },
        { name: "NO_FAKE_STAT", value: "1" },
      ],
    },
  };
}

/** Sets by how many seconds an instance's clock is off. */
export async function setClock(scene: Scene, instance: PlacedInstance, seconds: number): Promise<void> {
  const text = `${seconds < 0 ? "" : "+"}${seconds}`;
  await inInstance(scene, instance, `echo ${text} > ${offsetFile}.new && mv ${offsetFile}.new ${offsetFile}`);
}
