import { describe, expect, it } from "vitest";
import { withSidecar } from "../../../../src/plugin/framework/sidecar.ts";

const pod = {
  containers: [
    { name: "logger", image: "l" },
    { name: "postgres", image: "p", volumeMounts: [{ name: "pgdata", mountPath: "/var/lib/postgresql/data" }] },
  ],
  initContainers: [{ name: "bootstrap-controller", image: "b" }],
  volumes: [{ name: "pgdata" }],
};
const sidecar = { name: "archiver", image: "a" };
const plugins = { name: "plugins", mountPath: "/plugins" };

describe("a sidecar", () => {
  it("runs beside postgres and shares the folder of sockets with it", () => {
    expect(withSidecar(pod, sidecar)).toEqual({
      containers: [
        { name: "logger", image: "l" },
        {
          name: "postgres",
          image: "p",
          volumeMounts: [{ name: "pgdata", mountPath: "/var/lib/postgresql/data" }, plugins],
        },
      ],
      initContainers: [
        { name: "bootstrap-controller", image: "b" },
        { name: "archiver", image: "a", restartPolicy: "Always", volumeMounts: [plugins] },
      ],
      volumes: [{ name: "pgdata" }, { name: "plugins", emptyDir: {} }],
    });
    expect(pod.containers[1]?.volumeMounts).toHaveLength(1);
  });

  it("is the same when it is brought in twice", () => {
    const once = withSidecar(pod, sidecar, { copyMounts: true });
    expect(withSidecar(once, sidecar, { copyMounts: true })).toEqual(once);
    expect(withSidecar(once, { ...sidecar, image: "new" }).initContainers?.map(({ image }) => image)).toEqual([
      "b",
      "new",
    ]);
  });

  it("may see the volumes of postgres", () => {
    const mounts = withSidecar(pod, sidecar, { copyMounts: true }).initContainers?.[1]?.volumeMounts;
    expect(mounts).toEqual([{ name: "pgdata", mountPath: "/var/lib/postgresql/data" }, plugins]);
  });

  it("needs its main container", () => {
    expect(() => withSidecar(pod, sidecar, { mainContainer: "full-recovery" })).toThrow(
      "the pod has no container full-recovery beside which archiver could run",
    );
  });
});
