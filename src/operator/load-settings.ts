import { resources } from "../kube/resources.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { OperatorOptions } from "./operator-options.ts";
import { compileSettings, type OperatorSettings } from "./settings.ts";

/** Reads the settings from the environment, then the ConfigMap, then the Secret; the later wins. Throws when they contradict. */
export async function loadSettings(
  { api, env, flags }: OperatorOptions,
  signal: AbortSignal,
): Promise<OperatorSettings> {
  const namespace = env["OPERATOR_NAMESPACE"] ?? "";
  const read = async <T>(operation: Promise<T>): Promise<T | undefined> => {
    try {
      return await operation;
    } catch (error) {
      if (isKubeError(error, "notFound")) return undefined;
      throw error;
    }
  };
  const key = (name: string) => ({ namespace, name });
  const configMap =
    namespace && flags.configMapName
      ? await read(api.get(resources.configMaps, key(flags.configMapName), { signal }))
      : undefined;
  const secret =
    namespace && flags.secretName
      ? await read(api.get(resources.secrets, key(flags.secretName), { signal }))
      : undefined;
  const decoded = Object.fromEntries(
    Object.entries(secret?.data ?? {}).map(([name, value]) => [name, Buffer.from(value, "base64").toString("utf8")]),
  );
  const settings = compileSettings([env, configMap?.data ?? {}, decoded]);
  if (settings.webhookNamespaceSuffix && !settings.context.operatorNamespace) {
    throw new Error("ENABLE_WEBHOOK_NAMESPACE_SUFFIX needs OPERATOR_NAMESPACE: set it by the downward API");
  }
  return settings;
}
