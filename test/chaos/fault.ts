import type { TestCluster } from "../e2e/support/cluster.ts";

/** An instance, where it runs and by which address it is reached. */
export interface PlacedInstance {
  readonly name: string;
  /** Number of its node. */
  readonly node: number;
  readonly address: string;
}

/** What a fault is made on. */
export interface Scene {
  readonly cluster: TestCluster;
  readonly primary: PlacedInstance;
  readonly standbys: readonly PlacedInstance[];
  /** Addresses of the operator's pods. */
  readonly operators: readonly string[];
}

/**
 * What the cluster of a fault has: `plain` is as others have it, `loop` has volumes of a real size, and the instances of
 * `clock` read a clock that can be set.
 */
export type SceneKind = "plain" | "loop" | "clock";

export interface Fault {
  readonly about: string;
  /** How long the fault lasts. */
  readonly holdSeconds: number;
  /** Cluster that it needs. @default "plain" */
  readonly scene?: SceneKind;
  /** Whether API server or operator are hit too, so that they have to be waited for. @default false */
  readonly controlPlane?: boolean;
  /** Whether the primary's launcher, which ends it in time, stands still for longer than the right to write lasts. @default false */
  readonly stopsLauncher?: boolean;
  /** Waits for what the fault needs, before anything is written. */
  prepare?(cluster: TestCluster): Promise<void>;
  /** Makes the fault; resolves with what ends it, called after {@link holdSeconds}. */
  make(scene: Scene): Promise<() => Promise<unknown>>;
  /** Looks, before the end, at what has to go on all the same; resolves with what does not. */
  goesOn?(scene: Scene): Promise<string | undefined>;
}

/** End of a fault that is over once it was made. */
export const nothing = async (): Promise<void> => undefined;
