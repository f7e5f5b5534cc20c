import { ApiServer } from "./api-server.ts";
import type { FaultClass } from "./fault-classes.ts";
import { scheduleFaults, scheduleLaterFaults } from "./faults.ts";
import { Manager } from "./manager.ts";
import { Operator } from "./operator.ts";
import { type Durability, Oracle, Violation } from "./oracle.ts";
import { Postgres } from "./postgres.ts";
import { type Rules, realRules } from "./rules.ts";
import { World } from "./world.ts";

const faultsFromMs = 8_000;
const faultsUntilMs = 45_000;
/** Time in which a cluster has to be well again once nothing is wrong any more. */
export const healthyWithinMs = 90_000;
const writeEveryMs = 250;
/** A person looks this long after the last fault. */
const personAfterMs = 30_000;

export interface Outcome {
  seed: number;
  /** What must not have happened; `undefined` when all was well. */
  violation: string | undefined;
  /** Milliseconds from the last fault to health. */
  healedMs: number;
  acknowledged: number;
  /** What went wrong, and how often. */
  faults: ReadonlyMap<FaultClass, number>;
  trace: readonly string[];
}

/** In these clocks run more differently than is assumed. */
export const skewedSeeds = { from: 10, by: 20 };

export function isSkewedSeed(seed: number): boolean {
  return seed % skewedSeeds.by === skewedSeeds.from;
}

export interface ScenarioOptions {
  rules?: Partial<Rules>;
  tracing?: boolean;
  /** Asks for every promise also outside of the assumptions, where they cannot all be kept. */
  strict?: boolean;
}

/** One simulated cluster under the faults of one seed. */
export function runScenario(seed: number, options: ScenarioOptions = {}): Outcome {
  const world = new World(seed, options.tracing ?? false);
  const rules: Rules = { ...realRules, ...options.rules };
  const freezes = world.chance(0.2);
  const isAll = freezes ? seed % 3 === 0 : world.chance(0.3);
  const size = world.chance(0.7) ? 3 : world.chance(0.7) ? 2 : 1;
  const durability: Durability = isAll ? "all" : size === 3 && seed % 3 === 2 ? "some" : "none";
  const isSkewed = isSkewedSeed(seed);
  const { strict = false } = options;
  const oracle = new Oracle(world, durability, { isSkewed: isSkewed && !strict, forgivesFreezes: !strict });
  const names = Array.from({ length: size }, (_, index) => `c-${index + 1}`);
  const api = new ApiServer(world, names);
  const managers = names.map((name) => {
    const postgres = new Postgres(world, oracle, name);
    oracle.servers.push(postgres);
    const clock = {
      offset: world.between(0, 1e6),
      rate: world.chance(0.5) ? world.pick([0.955, 1.045]) : world.between(0.955, 1.045),
    };
    if (isSkewed) clock.rate = world.pick([0.5, 2]);
    return new Manager({ world, api, rules, postgres, clock, synchronous: durability });
  });
  for (const manager of managers) {
    for (const peer of managers) if (peer !== manager) manager.peers.set(peer.name, peer);
    // One of the two: late as far as is assumed, or a machine that stands still.
    if (world.chance(0.2) && !freezes) manager.launcherLateMs = 4_000;
  }
  world.count(
    isSkewed ? "clocks run more differently than is assumed" : "clocks run as differently as is assumed at most",
  );
  const [first] = managers;
  if (first) first.postgres.isPrimaryData = true;
  world.note(
    () =>
      `seed ${seed}: ${size} instances, synchronous: ${durability}, machines freeze: ${freezes}, clocks beyond the assumption: ${isSkewed}`,
  );
  // Later ones join at any time, so that the list of voters changes under way.
  managers.forEach((manager, index) => {
    const join = index === 0 ? 0 : world.chance(0.6) ? world.between(1_000, 4_000) : world.between(4_000, 30_000);
    world.at(join, () => joinCluster(manager, managers));
  });
  new Operator(world, api, managers, { failoverQuorum: durability === "some" }).run();
  keepWriting(world, managers);
  keepStreaming(world, api, managers);
  const targets = { world, api, managers, freezes };
  scheduleFaults(targets, faultsFromMs, faultsUntilMs);
  // Seeds that are named elsewhere are odd, and stay what they were.
  if (seed % 2 === 0) scheduleLaterFaults(targets, faultsFromMs, faultsUntilMs);
  const outcome = (violation: string | undefined): Outcome => ({
    seed,
    violation,
    healedMs: world.now - faultsUntilMs,
    acknowledged: oracle.acked.length,
    faults: world.faults,
    trace: world.trace,
  });
  try {
    run(world, faultsUntilMs);
    for (const manager of managers) manager.launcherLateMs = 50;
    world.note(() => "every fault is over");
    for (let at = faultsUntilMs + 1_000; at <= faultsUntilMs + healthyWithinMs; at += 1_000) {
      run(world, at);
      if (at === faultsUntilMs + personAfterMs) answerQuestion(world, api, managers);
      if (isHealthy(world, api, managers)) return outcome(undefined);
    }
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    world.note(() => `VIOLATION ${error.message}`);
    return outcome(error.message);
  }
  return outcome(`not healthy ${healthyWithinMs / 1_000} s after the last fault: ${describe(api, managers)}`);
}

function run(world: World, until: number): void {
  while (world.step(until));
  world.now = until;
}

function joinCluster(manager: Manager, managers: readonly Manager[]): void {
  const { postgres, world } = manager;
  if (manager !== managers[0]) {
    const source = managers.find((it) => it.postgres.writable)?.postgres;
    if (!source || source.frozen || !world.isUp(manager.name, source.name)) {
      world.after(1_000, () => joinCluster(manager, managers));
      return;
    }
    postgres.rewindTo(source);
  }
  manager.boot(false);
}

function keepWriting(world: World, managers: readonly Manager[]): void {
  let id = 0;
  const write = () => {
    world.after(writeEveryMs, write);
    for (const { postgres } of managers) {
      id += 1;
      postgres.write(id);
    }
  };
  write();
}

function keepStreaming(world: World, api: ApiServer, managers: readonly Manager[]): void {
  const stream = () => {
    world.after(200, stream);
    const service = managers.find((it) => it.name === api.cluster.current)?.postgres;
    for (const { postgres } of managers) {
      postgres.stream(service);
      reclone(postgres, service, world);
    }
  };
  stream();
}

/** A standby that has WAL of its own can't follow; a person, or a new clone, puts it right. */
function reclone(postgres: Postgres, service: Postgres | undefined, world: World): void {
  if (!service?.writable || service === postgres || !postgres.running || postgres.isPrimaryData) return;
  if (postgres.upstream || postgres.isPrefixOf(service) || world.now < faultsUntilMs) return;
  if (world.isUp(postgres.name, service.name)) postgres.rewindTo(service);
}

/** Whoever deletes the Lease may have to say which data is the newer one. */
function answerQuestion(world: World, api: ApiServer, managers: readonly Manager[]): void {
  if (api.deletedLeases === 0 || !managers.some((it) => it.asksForPerson)) return;
  const [newest] = [...managers].sort(
    ({ postgres: a }, { postgres: b }) => b.timeline - a.timeline || b.wal.length - a.wal.length,
  );
  if (!newest) return;
  world.note(() => `a person finds the newest data in ${newest.name}`);
  api.writeCluster(undefined, { current: newest.name, target: newest.name, targetAt: world.now });
}

function isHealthy(world: World, api: ApiServer, managers: readonly Manager[]): boolean {
  const primaries = managers.filter((it) => it.postgres.writable);
  const [primary] = primaries;
  if (!primary || primaries.length !== 1 || world.now - primary.postgres.lastAckAt > 2_000) return false;
  const { current, target } = api.cluster;
  if (current !== primary.name || target !== primary.name || !primary.holder.held) return false;
  return managers.every((it) => it === primary || it.postgres.upstream?.from === primary.postgres);
}

function describe(api: ApiServer, managers: readonly Manager[]): string {
  const each = managers.map(({ name, up, postgres, holder }) => {
    const role = !postgres.running ? "down" : postgres.isPrimaryData ? "primary" : "standby";
    return `${name} ${up ? role : "away"}${holder?.held ? " with the lease" : ""}${postgres.receiving ? ", receives" : ""}`;
  });
  return `current ${api.cluster.current}, target ${api.cluster.target}, lease of ${api.lease?.holder || "nobody"}; ${each.join("; ")}`;
}
