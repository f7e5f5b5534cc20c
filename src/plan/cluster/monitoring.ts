import { clusterNamespace, usesDefaultQueries } from "../../api/cluster-facts.ts";
import { defaultMonitoringName } from "../../api/names.ts";
import { mergeMetadata } from "../../build/metadata-repair.ts";
import {
  buildMonitoringConfigMap,
  buildMonitoringSecret,
  buildPodMonitor,
  isMonitoringCopyOutdated,
  isSamePodMonitor,
  wantsPodMonitor,
} from "../../build/monitoring.ts";
import { refTo } from "./actions.ts";
import { draftCluster, lookAgain, type Pass } from "./pass.ts";

/** Pause before a kind that is not installed is looked for again, in milliseconds. */
const unknownKindLookMs = 20_000;

/** Copies of the default queries in the cluster's namespace, and the scrape target for Prometheus. */
export function planMonitoring(pass: Pass): void {
  if (usesDefaultQueries(pass.cluster)) planDefaultQueries(pass);
  planPodMonitor(pass);
}

function planDefaultQueries(pass: Pass): void {
  const namespace = clusterNamespace(pass.cluster);
  const { context } = pass.observed.operator;
  const { queriesConfigMap, queriesSecret } = pass.observed.operatorObjects;
  const isSource = (name: string | undefined) =>
    namespace === context.operatorNamespace && name === defaultMonitoringName;
  if (queriesConfigMap && !isSource(queriesConfigMap.metadata.name)) {
    const wanted = buildMonitoringConfigMap(queriesConfigMap, namespace, context);
    if (wanted) planCopy(pass, wanted, pass.observed.configMaps.get(defaultMonitoringName));
  }
  if (queriesSecret && !isSource(queriesSecret.metadata.name)) {
    const wanted = buildMonitoringSecret(queriesSecret, namespace, context);
    if (wanted) planCopy(pass, wanted, pass.observed.secrets.get(defaultMonitoringName));
  }
}

type Copy = NonNullable<ReturnType<typeof buildMonitoringConfigMap> | ReturnType<typeof buildMonitoringSecret>>;

function planCopy(pass: Pass, wanted: Copy, live: Copy | undefined): void {
  const reason = `the default queries of namespace ${wanted.metadata.namespace} are copied from the operator's`;
  if (!live) pass.actions.push({ kind: "create", object: { ...wanted }, mustOwn: false, reason });
  else if (isMonitoringCopyOutdated(live, wanted)) {
    const patch = { data: wanted.data ?? {} };
    pass.actions.push({ kind: "patch", target: refTo(live, { content: true }), patch, bestEffort: false, reason });
  }
}

function planPodMonitor(pass: Pass): void {
  const known = pass.observed.podMonitor;
  if (!known) {
    // Nothing tells when the API server comes to know the kind.
    if (wantsPodMonitor(pass.cluster)) lookAgain(pass, unknownKindLookMs);
    return;
  }
  const wanted = buildPodMonitor(draftCluster(pass), pass.observed.operator.context);
  const name = wanted.metadata.name ?? "";
  const isWanted = wantsPodMonitor(pass.cluster);
  const live = known.object;
  if (!live) {
    const reason = `pod monitor ${name} does not exist`;
    if (isWanted) pass.actions.push({ kind: "create", object: { ...wanted }, mustOwn: true, reason });
    return;
  }
  const target = refTo({ ...wanted, metadata: { ...wanted.metadata, ...live.metadata } });
  if (!isWanted) {
    const reason = `pod monitor ${name} is disabled`;
    pass.actions.push({ kind: "delete", target, propagation: "Background", bestEffort: false, reason });
    return;
  }
  const metadata = mergeMetadata(live.metadata, wanted.metadata);
  if (!metadata && isSamePodMonitor(live.spec, wanted)) return;
  const { labels = {}, annotations = {} } = metadata ?? {};
  const patch = { metadata: { labels, annotations }, spec: wanted.spec };
  const reason = `pod monitor ${name} is out of date`;
  pass.actions.push({ kind: "patch", target, patch, bestEffort: false, reason });
}
