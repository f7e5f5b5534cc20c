import type { Plugin, PluginCapabilities } from "../../../src/ports/plugin.ts";
import { createLoadedPlugin } from "../../../src/rpc/loaded-plugin.ts";

const none: PluginCapabilities = {
  services: [],
  operator: [],
  lifecycle: [],
  wal: [],
  backup: [],
  reconciler: [],
  restoreJob: [],
  postgres: [],
  metrics: [],
};

/** A plugin without a wire: `answer` gets each call's label and its request, and says what comes back. */
export function fakePlugin(
  name: string,
  capabilities: Partial<PluginCapabilities>,
  answer: (label: string, request: unknown) => unknown,
): Plugin {
  const metadata = {
    name,
    version: "1.0.0",
    displayName: name,
    description: "",
    projectUrl: "",
    repositoryUrl: "",
    license: "",
    licenseUrl: "",
    maturity: "",
    vendor: "",
    manifest: {},
  };
  const identity = { metadata, capabilities: { ...none, ...capabilities } };
  return createLoadedPlugin(name, identity, async (rpc, request) => {
    // The request must be one that the wire can carry; the fake sees it as a server would.
    const seen = rpc.decodeRequest(rpc.encodeRequest(request));
    return answer(rpc.label, seen) as Awaited<ReturnType<typeof rpc.decodeResponse>>;
  });
}
