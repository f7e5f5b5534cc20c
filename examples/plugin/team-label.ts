// # A CNPG-I plugin: every pod of a cluster carries the label of its team
//
// Run it: `npx tsx team-label.ts --server-address :9090 --server-cert server.crt --server-key server.key --client-cert client.crt`
// beside a Service in the operator's namespace with the label `cnpg.io/pluginName: team-label.example.com` and the annotations
// `cnpg.io/pluginPort: "9090"`, `cnpg.io/pluginServerSecret` and `cnpg.io/pluginClientSecret` (TLS Secrets of both sides).
// Without flags it listens on the unix socket /plugins/team-label.example.com, which is how sidecars do it.
//
// Use it in a Cluster:
//   spec: { plugins: [{ name: team-label.example.com, parameters: { team: payments } }] }
//
// How it works: `services` says what the plugin does, and what is there is what it claims. The hook runs before the operator
// writes a pod (`create`, `patch`) and when it asks how a pod would look (`evaluate`); it must give the same answer each
// time, and no patch where nothing is to do. In a project of your own, import from "cnpg-ts/plugin".
import {
  buildJsonPatch,
  type Cluster,
  parameterError,
  readPluginConfiguration,
  StatusError,
  servePlugin,
} from "../../src/plugin/framework/index.ts";

export const name = "team-label.example.com";
const label = "example.com/team";

function teamOf(cluster: Cluster): string | undefined {
  return readPluginConfiguration(cluster, name).parameters["team"];
}

export const plugin = {
  identity: { name, version: "1.0.0", displayName: "Team label", license: "Apache-2.0" },
  services: {
    operator: {
      validateClusterCreate: (cluster: Cluster) =>
        teamOf(cluster) ? [] : [parameterError(readPluginConfiguration(cluster, name), "team", "name the team")],
    },
    lifecycle: {
      capabilities: [{ group: "", kind: "Pod", operations: ["create", "patch", "evaluate"] }],
      hook({ cluster, object }) {
        const team = teamOf(cluster);
        if (!team) throw new StatusError("INVALID_ARGUMENT", `${name}: the parameter "team" is missing`);
        const labels = { ...object.metadata.labels, [label]: team };
        return buildJsonPatch(object, { ...object, metadata: { ...object.metadata, labels } });
      },
    },
  },
} satisfies Omit<Parameters<typeof servePlugin>[0], "listen">;

if (import.meta.main) process.exitCode = await servePlugin(plugin);
