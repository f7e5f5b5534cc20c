// A plugin whose archive call never ends; says its address, and when a call has begun.
import { createPluginServer } from "../../../src/plugin/framework/create-plugin-server.ts";
import { pluginName } from "./lab.ts";

const server = await createPluginServer({
  identity: { name: pluginName, version: String(process.pid) },
  services: {
    wal: {
      archive: () => {
        process.stdout.write("archiving\n");
        return new Promise<void>(() => undefined);
      },
    },
  },
  listen: JSON.parse(process.argv[2] ?? ""),
});
process.stdout.write(`${server.address}\n`);
