import { openChannel } from "./channel.ts";
import type { PluginEndpoint } from "./endpoint.ts";
import { callUnary } from "./unary.ts";
import { type HealthAnswer, healthRpcs } from "./wire/health.ts";

/** Asks the health service once; throws when there is no answer. */
export async function checkHealth(endpoint: PluginEndpoint, timeoutMs: number): Promise<HealthAnswer> {
  const client = openChannel(endpoint);
  const where = endpoint.kind === "socket" ? endpoint.path : endpoint.address;
  try {
    return await callUnary(client, { plugin: endpoint.name, where }, healthRpcs.check, "", { deadlineMs: timeoutMs });
  } finally {
    client.close();
  }
}
