import {
  nodeAffinity,
  podAffinity,
  podAntiAffinity,
  toleration,
  topologySpreadConstraint,
} from "../core/generated/kubernetes.ts";
import { boolean, type Fields, listOf, object, string, stringMap, use } from "../parts/builders.ts";

/** Where the pods may run. */
export const placement: Fields = {
  affinity: object("On which nodes the pods may run, and which pods they keep away from.", {
    additionalPodAffinity: use("Pod affinity that is added to the pods.", podAffinity),
    additionalPodAntiAffinity: use("Pod anti-affinity that is added to the operator's own.", podAntiAffinity),
    enablePodAntiAffinity: boolean("Keep the instances of the cluster away from each other; true by default."),
    nodeAffinity: use("Node affinity of the pods.", nodeAffinity),
    nodeSelector: stringMap("Labels that a node has to have."),
    podAntiAffinityType: string("Whether instances must (required) or should (preferred) be kept apart."),
    tolerations: listOf("Taints that the pods tolerate.", toleration),
    topologyKey: string("Node label whose values tell places apart; the host name by default."),
  }),
  priorityClassName: string("Priority class of the pods."),
  schedulerName: string("Scheduler of the pods."),
  topologySpreadConstraints: listOf("How the pods are spread over places.", topologySpreadConstraint),
};
