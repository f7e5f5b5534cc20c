import type { Event } from "../api/generated/kubernetes.ts";
import type { Clock, Random } from "../ports/clock.ts";
import type { EventSink, EventTarget } from "../ports/event-sink.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import { backoffDelayMs } from "../runtime/backoff.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { EventAggregator, type EventWrite } from "./event-aggregator.ts";
import { resources } from "./resources.ts";

export interface EventSinkOptions {
  /** Who reports, for example `cloudnative-pg`. */
  component: string;
  /** Name of the pod or host that reports. */
  instance?: string;
  clock: Clock;
  /** @default the system's random values */
  random?: Random;
  logger: Logger;
}

/** An event sink that writes in the background. */
export interface KubeEventSink extends EventSink {
  /** Resolves when everything recorded so far was written or given up. */
  flush(): Promise<void>;
}

/** Writes waiting beyond this are dropped: events are for people, not for protocols. */
const maxWaiting = 1_000;
const maxAttempts = 6;
const backoff = { baseMs: 500, maxMs: 10_000, jitter: 0.3 };

/** Creates the sink of one program. Repeats of an event raise its count; floods about one object are thinned. */
export function createEventSink(api: KubeApi, options: EventSinkOptions): KubeEventSink {
  const aggregator = new EventAggregator(options.clock);
  const random = options.random ?? systemRandom;
  const waiting: EventWrite[] = [];
  let dropped = 0;
  let draining: Promise<void> | undefined;

  const drain = async () => {
    for (let write = waiting.shift(); write; write = waiting.shift()) {
      aggregator.sending(write);
      await send(api, options, random, aggregator, write);
      if (dropped > 0) options.logger.warning("Events were dropped", { dropped });
      dropped = 0;
    }
    draining = undefined;
  };

  return {
    record(target, event) {
      const write = aggregator.record(target, event);
      if (!write) return;
      if (waiting.length >= maxWaiting) {
        aggregator.sending(write);
        dropped++;
        return;
      }
      waiting.push(write);
      draining ??= drain();
    },
    async flush() {
      while (draining) await draining;
    },
  };
}

async function send(
  api: KubeApi,
  options: EventSinkOptions,
  random: Random,
  aggregator: EventAggregator,
  write: EventWrite,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await (write.written ? raiseCount(api, write) : api.create(resources.events, buildEvent(options, write)));
      write.written = true;
      return;
    } catch (error) {
      const last = attempt >= maxAttempts;
      if (write.written && isKubeError(error, "notFound") && !last) {
        // Events live for an hour on most servers; the next occurrence is a new one.
        aggregator.forget(write);
        write.written = false;
        continue;
      }
      // An earlier attempt without an answer had got through.
      if (isKubeError(error, "alreadyExists") && !last) {
        write.written = true;
        continue;
      }
      // Nobody will read it, and the reason is no secret to whoever deletes the namespace.
      if (isKubeError(error) && error.namespaceTerminating) return;
      if (!isKubeError(error, "unavailable") || last) {
        options.logger.warning("Event could not be written", { error, reason: write.reason, message: write.message });
        return;
      }
      await options.clock.sleep(backoffDelayMs(attempt, backoff, random.float()));
    }
  }
}

async function raiseCount(api: KubeApi, write: EventWrite): Promise<void> {
  const body = { count: write.count, lastTimestamp: formatTime(write.lastMs) };
  await api.patch(resources.events, { namespace: write.namespace, name: write.name }, { type: "merge", body });
}

function buildEvent(options: EventSinkOptions, write: EventWrite): Event {
  const { target } = write;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: write.namespace, name: write.name },
    involvedObject: involved(target),
    type: write.type,
    reason: write.reason,
    message: write.message,
    count: write.count,
    firstTimestamp: formatTime(write.firstMs),
    lastTimestamp: formatTime(write.lastMs),
    source: { component: options.component },
    reportingComponent: options.component,
    reportingInstance: options.instance ?? "",
  };
}

function involved(target: EventTarget): Event["involvedObject"] {
  const { apiVersion, kind, namespace, name, uid, resourceVersion } = target;
  return { apiVersion, kind, namespace, name, uid, ...(resourceVersion ? { resourceVersion } : {}) };
}

/** Event times carry seconds. */
function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
