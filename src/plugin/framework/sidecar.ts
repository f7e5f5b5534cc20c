import type { Container, PodSpec } from "../../api/generated/kubernetes.ts";
import { pluginSocketFolder } from "../../api/plugin-service.ts";

export interface SidecarOptions {
  /** The container beside which the sidecar runs. @default postgres */
  mainContainer?: string;
  /** Whether the sidecar sees the same volumes as the main container. @default false */
  copyMounts?: boolean;
}

const socketVolume = "plugins";

/**
 * A pod spec with the plugin's container as a native sidecar (an init container that goes on running), and with the folder
 * of sockets shared between it and the main container. A container of that name is replaced, so that the result is the
 * same when it is applied twice. The spec given is not changed.
 */
export function withSidecar(spec: PodSpec, sidecar: Container, options: SidecarOptions = {}): PodSpec {
  const name = options.mainContainer ?? "postgres";
  const main = spec.containers.find((container) => container.name === name);
  if (!main) throw new Error(`the pod has no container ${name} beside which ${sidecar.name} could run`);
  const container = withSocketMount({
    ...sidecar,
    restartPolicy: "Always",
    volumeMounts: [...(sidecar.volumeMounts ?? []), ...(options.copyMounts ? missingMounts(main, sidecar) : [])],
  });
  const others = spec.initContainers ?? [];
  const place = others.findIndex((other) => other.name === sidecar.name);
  return {
    ...spec,
    containers: spec.containers.map((other) => (other === main ? withSocketMount(other) : other)),
    initContainers: place < 0 ? [...others, container] : others.with(place, container),
    volumes: withSocketVolume(spec.volumes ?? []),
  };
}

function missingMounts(main: Container, sidecar: Container) {
  const own = new Set(sidecar.volumeMounts?.map((mount) => mount.mountPath));
  return (main.volumeMounts ?? []).filter((mount) => mount.name !== socketVolume && !own.has(mount.mountPath));
}

function withSocketMount(container: Container): Container {
  const mounts = container.volumeMounts ?? [];
  if (mounts.some((mount) => mount.name === socketVolume)) return container;
  return { ...container, volumeMounts: [...mounts, { name: socketVolume, mountPath: pluginSocketFolder }] };
}

function withSocketVolume(volumes: NonNullable<PodSpec["volumes"]>): NonNullable<PodSpec["volumes"]> {
  if (volumes.some((volume) => volume.name === socketVolume)) return volumes;
  return [...volumes, { name: socketVolume, emptyDir: {} }];
}
