import type { Cluster } from "../../api/generated/cluster.ts";
import { type DefinitionVerdict, judgeDefinition, type ManagerIdentity } from "../../plan/instance/definition.ts";
import type { Logger } from "../../ports/logger.ts";

/** What a pass goes by: the Cluster with the definition in force. */
export interface Definition {
  cluster: Cluster;
  /** The newest definition is held back; `cluster` has the one before it, when there was one in the life of this process. */
  heldBack: boolean;
  /** Whether the definition in `cluster` was admitted. */
  isAdmitted: boolean;
}

/** Keeps back what came past the webhooks, and tells of it once. */
export class DefinitionGuard {
  readonly #me: ManagerIdentity;
  readonly #logger: Logger;
  /** The definition that was judged last. A Cluster comes by many times between two changes of it. */
  #last: { key: string; verdict: DefinitionVerdict } | undefined;
  #admitted: Cluster["spec"] | undefined;
  #told = "";

  constructor(me: ManagerIdentity, logger: Logger) {
    this.#me = me;
    this.#logger = logger;
  }

  /** The definition to go by. What the status and the annotations say is always the newest. */
  judge(newest: Cluster): Definition {
    const verdict = this.#verdictOn(newest);
    this.#tell(verdict);
    if (verdict.kind === "admitted") {
      this.#admitted = newest.spec;
      return { cluster: newest, heldBack: false, isAdmitted: true };
    }
    if (!this.#admitted) return { cluster: newest, heldBack: true, isAdmitted: false };
    return { cluster: { ...newest, spec: this.#admitted }, heldBack: true, isAdmitted: true };
  }

  #verdictOn(cluster: Cluster): DefinitionVerdict {
    const { metadata, spec, status } = cluster;
    const key = JSON.stringify([metadata.name, metadata.annotations, spec, status?.availableArchitectures]);
    if (this.#last?.key !== key) this.#last = { key, verdict: judgeDefinition(cluster, this.#me) };
    return this.#last.verdict;
  }

  #tell(verdict: DefinitionVerdict): void {
    const reason = verdict.kind === "heldBack" ? verdict.reason : "";
    if (reason === this.#told) return;
    this.#told = reason;
    if (verdict.kind === "admitted") {
      this.#logger.info("The definition of the Cluster is admitted again");
      return;
    }
    this.#logger.warning(
      "The definition of the Cluster came past the webhooks; files and PostgreSQL stay as they are",
      {
        reason,
        errors: verdict.errors,
      },
    );
  }
}
