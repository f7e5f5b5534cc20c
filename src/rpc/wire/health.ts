import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health_pb.ts";
import { defineRpc } from "./rpc.ts";

/** The usual health check; the answer says whether the server serves. */
export const healthRpcs = {
  check: defineRpc(Health.method.check, {
    toRequest: (service: string) => ({ service }),
    fromRequest: ({ service }): string => service,
    toResponse: (serving: boolean) => ({ status: serving ? Status.SERVING : Status.NOT_SERVING }),
    fromResponse: ({ status }): boolean => status === Status.SERVING,
  }),
};
