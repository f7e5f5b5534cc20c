import type { ApiServer } from "./api-server.ts";
import { lineClass } from "./fault-classes.ts";
import type { Manager } from "./manager.ts";
import { toleratedFreezeMs } from "./postgres.ts";
import type { World } from "./world.ts";

export interface FaultTargets {
  world: World;
  api: ApiServer;
  managers: readonly Manager[];
  /** Whole machines may stand still. */
  freezes: boolean;
}

type Fault = (targets: FaultTargets, until: number) => void;

function cutFor(world: World, until: number, a: string, bs: readonly string[], what: string): void {
  if (world.now >= until) return;
  const lines = bs.filter((b) => b !== a);
  for (const b of lines) {
    world.cut(a, b);
    world.count(lineClass(a, b));
  }
  const end = Math.min(until, world.now + world.between(500, 35_000));
  world.note(() => `FAULT ${what}: ${a} cut off from ${lines.join(", ")} for ${Math.round(end - world.now)} ms`);
  world.at(end, () => {
    for (const b of lines) world.mend(a, b);
    world.note(() => `${what} mended`);
  });
}

/** The primary, if there is one, more often than the others. */
function victim({ world, managers }: FaultTargets): Manager {
  const primary = managers.find((it) => it.postgres.writable);
  return primary && world.chance(0.6) ? primary : world.pick(managers);
}

function names({ managers }: FaultTargets): string[] {
  return managers.map(({ name }) => name);
}

function aside({ world }: FaultTargets, until: number, ms: number, begin: () => void, end: () => void): void {
  begin();
  world.at(Math.min(until, world.now + ms), end);
}

/** Somebody asks for another primary. */
function switchOver({ world, api, managers }: FaultTargets, target: string): void {
  // Whoever names an old primary that was not rewound asks for a person.
  if (!managers.some(({ name, postgres }) => name === target && postgres.running && !postgres.isPrimaryData)) return;
  if (api.cluster.target !== api.cluster.current || target === api.cluster.current) return;
  world.note(() => `switchover to ${target} is asked for`);
  api.writeCluster(undefined, { target, targetAt: world.now });
}

/** The worst at once: late answers, a primary that hears nothing, a manager that does not run, and a successor that is named. */
function outOfTouch(on: FaultTargets, until: number, cut: (primary: string) => void): void {
  const { world, managers } = on;
  const primary = managers.find((it) => it.postgres.writable);
  const others = managers.filter((it) => it !== primary);
  if (!primary || others.length === 0 || world.now + 3_000 > until) return;
  if (world.chance(0.3)) {
    world.slow = 0.9;
    world.count("answers are lost or late");
    world.after(3_000, () => {
      world.slow = 0;
    });
  }
  if (world.chance(0.5) && !on.freezes) primary.launcherLateMs = 4_000;
  world.after(3_000, () => {
    cut(primary.name);
    const lines = world.chance(0.4) ? others : world.chance(0.5) ? [world.pick(others)] : [];
    if (lines.length > 0)
      cutFor(
        world,
        until,
        primary.name,
        lines.map(({ name }) => name),
        "and no peers",
      );
    if (world.chance(0.4)) {
      world.count("a manager stands still");
      primary.pausedUntil = Math.min(until, world.now + world.between(1_000, 25_000));
    }
  });
  world.after(3_000 + world.between(500, 20_000), () => switchOver(on, world.pick(others).name));
}

/** A primary ends in order, can tell its peers and not the API server, comes back in the same pod, and loses touch then. */
function endUnheard(on: FaultTargets, until: number): void {
  const { world, managers } = on;
  const primary = managers.find((it) => it.postgres.writable);
  const others = managers.filter((it) => it !== primary);
  if (!primary?.up || others.length === 0 || world.now + 25_000 > until) return;
  const backMs = world.between(4_000, 9_000);
  cutFor(world, world.now + backMs, "op", ["api", ...names(on)], "operator away");
  cutFor(world, world.now + backMs / 2, primary.name, ["api"], "no API server");
  primary.terminate("fast", "FAULT a signal");
  world.after(backMs + world.between(0, 2_000), () =>
    cutFor(world, until, primary.name, ["api", "op"], "out of touch"),
  );
  world.after(backMs + world.between(500, 8_000), () => switchOver(on, world.pick(others).name));
}

/** A manager's process ends after a time, and soon comes back beside its PostgreSQL. */
function crashRuntime({ world }: FaultTargets, who: Manager, afterMs: number): void {
  world.after(afterMs, () => {
    if (!who.up) return;
    world.note(() => `FAULT ${who.name}: its runtime crashes`);
    world.count("PostgreSQL or its manager crashes");
    who.killRuntime(world.between(150, 3_000));
  });
}

/** The next new voter is listed, and the holder never hears that it is; then the voter is to be primary. */
function loseNewVoter(on: FaultTargets, until: number, also: (holder: Manager | undefined) => unknown): void {
  const { world, api } = on;
  world.note(() => "the next new voter is listed without the holder being told");
  api.onNewVoter = (holder, voter) => {
    api.onNewVoter = undefined;
    if (world.now >= until) return;
    cutFor(world, until, holder, ["api", "op"], "the answer is lost");
    also(on.managers.find(({ name }) => name === holder));
    world.after(world.between(12_000, 20_000), () => switchOver(on, voter));
  };
}

const faults: readonly Fault[] = [
  endUnheard,
  (on) => {
    const who = victim(on);
    if (who.up) who.terminate("fast", "FAULT a signal");
  },
  (on, until) => {
    const who = victim(on);
    if (!who.up) return;
    cutFor(on.world, Math.min(until, on.world.now + 3_000), who.name, ["api"], "unknown to the API server");
    who.terminate("fast", "FAULT its pod is deleted by force");
    on.world.after(2_000, () => {
      who.uid += 1;
      who.killContainer(on.world.between(500, 5_000));
    });
  },
  (on, until) =>
    cutFor(on.world, until, on.world.pick(names(on)), [on.world.pick([...names(on), "api", "op"])], "line"),
  (on, until) => cutFor(on.world, until, victim(on).name, ["api"], "no API server"),
  (on, until) => cutFor(on.world, until, victim(on).name, ["api", "op"], "no control plane"),
  (on, until) => cutFor(on.world, until, victim(on).name, [...names(on), "api", "op"], "island"),
  (on, until) => {
    const { name } = victim(on);
    cutFor(on.world, until, name, ["api", "op"], "no control plane first");
    on.world.after(on.world.between(0, 12_000), () => cutFor(on.world, until, name, names(on), "then no peers"));
  },
  (on, until) => cutFor(on.world, until, "api", [...names(on), "op"], "API server away"),
  (on, until) => cutFor(on.world, until, "op", ["api", ...names(on)], "operator away"),
  (on, until) => {
    const who = victim(on);
    const ms = on.world.between(200, 20_000);
    on.world.note(() => `FAULT ${who.name}: its manager stands still for ${Math.round(ms)} ms`);
    on.world.count("a manager stands still");
    who.pausedUntil = Math.min(until, on.world.now + ms);
  },
  (on) => {
    const who = victim(on);
    on.world.note(() => `FAULT ${who.name}: PostgreSQL crashes`);
    on.world.count("PostgreSQL or its manager crashes");
    if (who.postgres.running) who.postgres.die();
  },
  (on) => crashRuntime(on, victim(on), 0),
  (on, until) => {
    cutFor(on.world, until, "api", [...names(on), "op"], "API server away");
    crashRuntime(on, victim(on), on.world.between(0, 8_000));
  },
  (on) => {
    const who = victim(on);
    if (!who.up) return;
    on.world.note(() => `FAULT ${who.name}: its container is killed`);
    on.world.count("PostgreSQL or its manager crashes");
    who.killContainer(on.world.between(500, 5_000));
  },
  (on) => {
    const who = victim(on);
    if (!who.up) return;
    on.world.note(() => `FAULT ${who.name}: its pod is replaced`);
    who.uid += 1;
    who.killContainer(on.world.between(2_000, 8_000));
  },
  (on, until) => {
    const { world } = on;
    const [loss, slow] = [world.between(0, 0.4), world.between(0, 0.5)];
    world.note(() => `FAULT messages: ${loss.toFixed(2)} lost, ${slow.toFixed(2)} late`);
    world.count("answers are lost or late");
    aside(
      on,
      until,
      world.between(2_000, 30_000),
      () => {
        world.loss = loss;
        world.slow = slow;
      },
      () => {
        world.loss = world.slow = 0;
      },
    );
  },
  ({ world, api }) => {
    world.note(() => "FAULT the lease is deleted");
    world.count("the lease is deleted");
    api.deleteLease();
  },
  (on) => {
    const target = on.world.pick(names(on));
    const isFollower = on.managers.some(({ name, postgres }) => name === target && postgres.receiving);
    if (isFollower) switchOver(on, target);
  },
  (on, until) => outOfTouch(on, until, (primary) => cutFor(on.world, until, primary, ["api", "op"], "out of touch")),
  (on, until) => {
    const { world, api } = on;
    outOfTouch(on, until, (primary) => {
      world.note(() => "FAULT the lease is deleted");
      world.count("the lease is deleted");
      api.deleteLease();
      world.after(world.between(0, 1_500), () => {
        if (!api.lease) api.recreateLease();
      });
      cutFor(world, until, primary, ["api", "op"], "out of touch");
    });
  },
  (on, until) =>
    loseNewVoter(on, until, (holder) => {
      if (holder && on.world.chance(0.5)) crashRuntime(on, holder, on.world.between(200, 4_000));
    }),
  (on, until) => {
    if (on.freezes) freeze(on, until);
  },
];

/** A whole machine stands still. */
function freeze(on: FaultTargets, until: number): void {
  const who = victim(on);
  const ms = Math.min(until - on.world.now, on.world.between(1_000, 35_000));
  on.world.note(() => `FAULT ${who.name}: the whole machine stands still for ${Math.round(ms)} ms`);
  on.world.count(
    ms < toleratedFreezeMs
      ? "a machine stands still, shorter than a lease allows for"
      : "a machine stands still, longer than a lease allows for",
  );
  who.postgres.freeze(on.world.now + ms);
}

/** Faults that came later than the others, beside which they happen: the seeds of those stay what they are. */
const laterFaults: readonly Fault[] = [
  (on, until) => {
    const { world } = on;
    const places = [...names(on), "api", "op"];
    const a = world.pick(places);
    cutFor(world, until, a, [world.pick(places)], "any line");
  },
  (on, until) => {
    const who = victim(on);
    const ms = Math.min(until - on.world.now, on.world.between(5_000, 35_000));
    if (!who.up || ms < 1_000) return;
    on.world.note(() => `FAULT ${who.name}: its node crashes`);
    on.world.count("a node crashes");
    cutFor(on.world, on.world.now + ms, who.name, [...names(on), "api", "op"], "node");
    who.killContainer(ms);
  },
  (on, until) => {
    const { world, api } = on;
    const reader = world.chance(0.5) ? "op" : victim(on).name;
    const ms = world.between(1_000, 20_000);
    world.note(() => `FAULT ${reader} sees for ${Math.round(ms)} ms what was`);
    world.count("somebody reads what is old");
    api.holdCopyOf(reader, Math.min(until, world.now + ms));
  },
  (on, until) => {
    const { world, api } = on;
    const ms = world.between(2_000, 25_000);
    const writer = world.pick([...names(on), "op", "op"]);
    world.note(() => `FAULT for ${Math.round(ms)} ms writes of the status by ${writer} are lost`);
    world.count("writes of status are lost");
    api.loseWritesOf(writer, Math.min(until, world.now + ms));
  },
  // The old copy counts when something else happens: the primary is lost, or somebody asks for another.
  (on, until) => {
    const { world, api } = on;
    const who = victim(on);
    world.note(() => `FAULT ${who.name} sees what was, while its role moves on`);
    world.count("somebody reads what is old");
    api.holdCopyOf(who.name, Math.min(until, world.now + world.between(5_000, 25_000)));
    world.after(world.between(0, 4_000), () => switchOver(on, world.pick(names(on))));
  },
  // A runtime that found a primary which is alone lists its first voter.
  (on, until) => {
    const { world, api } = on;
    const alone = on.managers.find((it) => it.postgres.writable);
    if (!alone || api.cluster.active.some((name) => name !== alone.name)) return;
    const watch = () => {
      if (world.now >= until) return;
      if (api.cluster.active.every((name) => name === alone.name)) return world.after(100, watch);
      crashRuntime(on, alone, 0);
      loseNewVoter(on, until, (holder) => holder && cutFor(world, until, holder.name, names(on), "and no peers"));
    };
    watch();
  },
  // The old copy counts too when the Lease is free: the successor ended in order.
  (on, until) => {
    const { world, api } = on;
    const former = on.managers.find((it) => it.postgres.writable);
    if (!former?.up || on.managers.length === 1 || world.now + 12_000 > until) return;
    world.count("somebody reads what is old");
    api.holdCopyOf(former.name, until);
    switchOver(on, world.pick(names(on).filter((name) => name !== former.name)));
    former.terminate("fast", "FAULT a signal, and it sees what was before the switchover");
    world.after(world.between(5_000, 12_000), () => {
      const successor = on.managers.find((it) => it.postgres.writable && it !== former);
      if (successor?.up) successor.terminate("fast", "FAULT a signal");
    });
  },
  // A former primary comes back and knows nothing of its successor, and the Lease that would tell is not there any more.
  (on, until) => {
    const { world, api } = on;
    const primary = on.managers.find((it) => it.postgres.writable);
    if (!primary?.up || on.managers.length === 1 || world.now + 12_000 > until) return;
    world.note(() => `FAULT ${primary.name} sees what was, and its container is killed`);
    world.count("somebody reads what is old");
    world.count("PostgreSQL or its manager crashes");
    api.holdCopyOf(primary.name, until);
    primary.killContainer(world.between(500, 8_000));
    world.after(world.between(4_000, 12_000), () => {
      world.note(() => "FAULT the lease is deleted");
      world.count("the lease is deleted");
      api.deleteLease();
    });
  },
];

/** One or two of the later faults. */
export function scheduleLaterFaults(on: FaultTargets, from: number, until: number): void {
  const count = on.world.chance(0.5) ? 1 : 2;
  for (let index = 0; index < count; index += 1) {
    const fault = on.world.pick(laterFaults);
    on.world.at(on.world.between(from, until - 5_000), () => fault(on, until));
  }
  // Machines that stand still are rare among the others.
  if (on.freezes) on.world.at(on.world.between(from, until - 20_000), () => freeze(on, until));
}

/** Lets one to six things go wrong before the time; all of them are over by then. */
export function scheduleFaults(on: FaultTargets, from: number, until: number): void {
  const count = 1 + Math.floor(on.world.between(0, 6));
  for (let index = 0; index < count; index += 1) {
    const fault = on.world.pick(faults);
    on.world.at(on.world.between(from, until - 5_000), () => fault(on, until));
  }
}
