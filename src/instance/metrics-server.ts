import { resources } from "../kube/resources.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { SqlRawConnector } from "../ports/sql-session.ts";
import { readRuntimeFacts } from "../runtime/runtime-facts.ts";
import type { InstanceContext } from "./instance-context.ts";
import { mightBeUnavailable } from "./instance-state.ts";
import { createMetricsCollector, metricsContentType, metricsTarget } from "./metrics/collector.ts";
import type { QuerySource } from "./metrics/facts.ts";
import { addPluginMetrics } from "./plugins/plugin-metrics.ts";
import { type SecretReader, secretText } from "./secret-reader.ts";
import type { HttpHandler } from "./web/http-answer.ts";

interface Reference {
  kind: "ConfigMap" | "Secret";
  name: string;
  key: string;
}

/** Pause before what could not be read is asked for again, in milliseconds. */
const retryMs = 5_000;

/** Texts with the monitoring queries that a Cluster names; the operator has put the default ones among them. */
export class QuerySources {
  readonly #context: InstanceContext;
  readonly #secrets: SecretReader;
  #versions = "";
  /** What was asked for last, and when to ask again if it was not all there. */
  #attempt: { versions: string; againAtMs: number } | undefined;
  #sources: readonly QuerySource[] = [];
  isPrimary = false;

  constructor(context: InstanceContext, secrets: SecretReader) {
    this.#context = context;
    this.#secrets = secrets;
  }

  get current(): readonly QuerySource[] {
    return this.#sources;
  }

  #references(): Reference[] {
    const monitoring = this.#context.state.cluster?.spec.monitoring;
    return [
      ...(monitoring?.customQueriesConfigMap ?? []).map(({ name, key }) => ({ kind: "ConfigMap" as const, name, key })),
      ...(monitoring?.customQueriesSecret ?? []).map(({ name, key }) => ({ kind: "Secret" as const, name, key })),
    ];
  }

  /** Reads the texts anew when the Cluster's status tells that one of them changed; costs nothing when none did. */
  async refresh(signal: AbortSignal): Promise<void> {
    const status = this.#context.state.cluster?.status;
    const versions = JSON.stringify([
      this.#references(),
      status?.configMapResourceVersion?.metrics ?? {},
      status?.secretsResourceVersion?.metrics ?? {},
    ]);
    if (versions === this.#versions) return;
    const now = this.#context.clock.monotonicMs();
    if (versions === this.#attempt?.versions && now < this.#attempt.againAtMs) return;
    this.#attempt = { versions, againAtMs: now + retryMs };
    const sources: QuerySource[] = [];
    let complete = true;
    for (const reference of this.#references()) {
      const name = `${reference.kind} ${reference.name}/${reference.key}`;
      const read = await this.#read(reference, signal);
      // Forbidden until the operator has named it in the Role, or unreadable while the API server is away: asked for again.
      if (read === "unreadable") complete = false;
      const yaml = read === "unreadable" ? this.#sources.find((it) => it.name === name)?.yaml : read?.yaml;
      if (yaml !== undefined) sources.push({ name, yaml });
    }
    this.#sources = sources;
    if (complete) this.#versions = versions;
  }

  async #read(
    reference: Reference,
    signal: AbortSignal,
  ): Promise<{ yaml: string | undefined } | "unreadable" | undefined> {
    const { kube, settings, logger } = this.#context;
    const source = { source: reference.name, key: reference.key };
    try {
      if (reference.kind === "Secret") {
        // What is remembered may be the version that has just been replaced.
        this.#secrets.forget(reference.name);
        const read = await this.#secrets.read(reference.name, signal);
        if (read.kind === "found") return { yaml: secretText(read.secret, reference.key) };
        logger.warning("Monitoring queries are left out", { ...source, reason: read.kind });
        return read.kind === "missing" ? undefined : "unreadable";
      }
      const key = { namespace: settings.namespace, name: reference.name };
      const map = await kube.get(resources.configMaps, key, { timeoutMs: 5_000, signal });
      return { yaml: map.data?.[reference.key] };
    } catch (error) {
      logger.warning("Monitoring queries are left out", { ...source, error });
      return isKubeError(error, "notFound") ? undefined : "unreadable";
    }
  }
}

/** Answers `GET /metrics`. */
export function metricsHandler(context: InstanceContext, sql: SqlRawConnector, sources: QuerySources): HttpHandler {
  const { paths, settings, state, clock, logger } = context;
  const collector = createMetricsCollector({
    connect: (database, signal) => sql.connect(metricsTarget(paths.socketDir, settings.postgresPort, database), signal),
    cluster: () => state.cluster,
    instance: () => ({
      podName: settings.podName,
      isPrimary: sources.isPrimary,
      isFenced: state.fenced,
      mightBeUnavailable: mightBeUnavailable(state),
    }),
    querySources: () => sources.current,
    plugins: async (samples) => {
      const { cluster } = state;
      if (cluster && context.plugins) await addPluginMetrics(context.plugins, cluster, samples);
    },
    runtime: readRuntimeFacts,
    clock,
    logger: logger.child({ logger: "metrics" }),
  });
  return async (_request, url) => {
    if (url.pathname !== "/metrics") return undefined;
    sources.isPrimary = (await context.data.role()) === "primary";
    return { status: 200, body: await collector.collect(), contentType: metricsContentType };
  };
}
