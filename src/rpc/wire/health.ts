import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health_pb.ts";
import { defineRpc } from "./rpc.ts";

/** What a server says of itself; `unknown` is an answer too. */
export type HealthAnswer = "serving" | "notServing" | "unknown";

const statuses: Readonly<Record<HealthAnswer, Status>> = {
  serving: Status.SERVING,
  notServing: Status.NOT_SERVING,
  unknown: Status.UNKNOWN,
};

/** The usual health check. */
export const healthRpcs = {
  check: defineRpc(Health.method.check, {
    toRequest: (service: string) => ({ service }),
    fromRequest: ({ service }): string => service,
    toResponse: (answer: HealthAnswer) => ({ status: statuses[answer] }),
    fromResponse: ({ status }): HealthAnswer => {
      if (status === Status.SERVING) return "serving";
      return status === Status.NOT_SERVING ? "notServing" : "unknown";
    },
  }),
};
