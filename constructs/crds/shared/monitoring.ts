import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { boolean, enumOf, type Fields, integer, listOf, object, string, stringList } from "../parts/builders.ts";

const actions = [
  ["replace", "Replace"],
  ["keep", "Keep"],
  ["drop", "Drop"],
  ["hashmod", "HashMod"],
  ["labelmap", "LabelMap"],
  ["labeldrop", "LabelDrop"],
  ["labelkeep", "LabelKeep"],
  ["lowercase", "Lowercase"],
  ["uppercase", "Uppercase"],
  ["keepequal", "KeepEqual"],
  ["dropequal", "DropEqual"],
].flat();

const relabeling: Schema = object("One relabeling step of Prometheus.", {
  action: enumOf("What the step does.", actions, { default: "replace" }),
  modulus: integer("Modulus of the hash, for action hashmod.", { bits: 64 }),
  regex: string("Expression that the joined source labels are matched with."),
  replacement: string("Text that replaces the match; it may name groups of the expression."),
  separator: string("Text between the joined source labels."),
  sourceLabels: stringList("Labels whose values are joined and matched."),
  targetLabel: string("Label that is written."),
});

/** What a PodMonitor made by the operator says; for Cluster and Pooler. */
export const podMonitor: Fields = {
  enablePodMonitor: boolean("Make a PodMonitor for the pods.", { default: false }),
  podMonitorMetricRelabelings: listOf("Relabeling of samples before they are stored.", relabeling),
  podMonitorRelabelings: listOf("Relabeling of targets before they are scraped.", relabeling),
  tls: object("TLS of the metrics endpoint.", {
    enabled: boolean("Serve metrics over TLS; changing it restarts the pods.", { default: false }),
  }),
};
