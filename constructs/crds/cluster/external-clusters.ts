import { secretKeySelector } from "../core/generated/kubernetes.ts";
import { boolean, type Fields, listOf, object, required, string, stringMap, use } from "../parts/builders.ts";
import { barmanObjectStore } from "../shared/object-store.ts";

const plugin = object("A plugin and its parameters.", {
  enabled: boolean("Whether the plugin is used.", { default: true }),
  isWALArchiver: boolean("Whether the plugin archives the WAL; one plugin at most may.", { default: false }),
  name: required(string("Name of the plugin.")),
  parameters: stringMap("Parameters passed to the plugin as they are."),
});

/** Plugins, and servers outside of this cluster. */
export const connections: Fields = {
  externalClusters: listOf(
    "Servers that this cluster restores, copies, imports, subscribes or replicates from.",
    object("A server outside of this cluster.", {
      barmanObjectStore,
      connectionParameters: stringMap("Parameters to connect with, such as host, user and dbname."),
      name: required(string("Name by which the rest of this object refers to the server.")),
      password: use("Secret key that holds the password.", secretKeySelector),
      plugin,
      sslCert: use("Secret key that holds the client certificate.", secretKeySelector),
      sslKey: use("Secret key that holds the client certificate's private key.", secretKeySelector),
      sslRootCert: use(
        "Secret key that holds the CA that the server's certificate is checked with.",
        secretKeySelector,
      ),
    }),
  ),
  plugins: listOf("Plugins that take part in running the cluster.", plugin),
};
