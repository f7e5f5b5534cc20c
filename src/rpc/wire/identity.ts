import type { PluginMetadata } from "../../ports/plugin.ts";
import { Identity, PluginCapability_Service_TypeSchema } from "../gen/identity_pb.ts";
import { enumName, enumNumber } from "./enum-name.ts";
import { defineRpc, nothing } from "./rpc.ts";
import { WireError } from "./wire-error.ts";

/** Calls of the Identity service. */
export const identityRpcs = {
  getPluginMetadata: defineRpc(Identity.method.getPluginMetadata, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (metadata: PluginMetadata) => metadata,
    fromResponse: ({ $typeName: _, $unknown: __, ...metadata }): PluginMetadata => metadata,
  }),
  getPluginCapabilities: defineRpc(Identity.method.getPluginCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (services: readonly string[]) => ({
      capabilities: services.map((name) => ({
        type: { case: "service", value: { type: enumNumber(PluginCapability_Service_TypeSchema, name) } } as const,
      })),
    }),
    fromResponse: ({ capabilities }): readonly string[] =>
      capabilities.map(({ type }) => {
        if (type.case !== "service") throw new WireError("Identity.GetPluginCapabilities: an element names no service");
        return enumName(PluginCapability_Service_TypeSchema, type.value.type);
      }),
  }),
  probe: defineRpc(Identity.method.probe, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (ready: boolean) => ({ ready }),
    fromResponse: ({ ready }): boolean => ready,
  }),
};
