import { createOperatorStores, type OperatorStores } from "../../../src/operator/stores.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import type { FakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

/** The operator's stores, filled with what the API has and following it. */
export interface StartedStores {
  readonly stores: OperatorStores;
  /** Aborted by {@link stop}. */
  readonly signal: AbortSignal;
  stop(): Promise<void>;
}

/** Starts stores over all namespaces and waits until they are filled. */
export async function startStores(api: FakeKubeApi, clock: FakeClock): Promise<StartedStores> {
  const { stores, parts } = createOperatorStores({
    source: api,
    clock,
    logger: captureLogs().logger,
    watchNamespaces: [],
    operatorNamespace: "",
    sourceNames: [],
  });
  const end = new AbortController();
  const running = Promise.all(parts.map((it) => it.run(end.signal)));
  await Promise.all(Object.values(stores).map((it) => it.synced()));
  const stop = async () => {
    end.abort();
    await running;
  };
  return { stores, signal: end.signal, stop };
}
