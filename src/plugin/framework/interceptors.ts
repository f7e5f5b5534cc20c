import type { Logger } from "../../ports/logger.ts";
import type { CallContext, Handler } from "../../rpc/server.ts";
import { statusOf } from "./status-error.ts";

/** Runs around each call, bytes in and out; the first one of a list is the outermost. */
export type Interceptor = (context: CallContext, next: () => Promise<Uint8Array>) => Promise<Uint8Array>;

/** Puts the interceptors around a handler. */
export function intercept(handler: Handler, interceptors: readonly Interceptor[]): Handler {
  return {
    ...handler,
    serve: (bytes, context) =>
      interceptors.reduceRight<() => Promise<Uint8Array>>(
        (next, interceptor) => () => interceptor(context, next),
        () => handler.serve(bytes, context),
      )(),
  };
}

/** Logs failed calls: surprises as errors, the statuses that handlers chose as details. */
export function logFailures(logger: Logger): Interceptor {
  return async (context, next) => {
    try {
      return await next();
    } catch (error) {
      const { status, details } = statusOf(error);
      const fields = { call: context.label, status, error: details };
      if (status === "UNKNOWN" && !context.signal.aborted) logger.error("Call failed", fields);
      else logger.debug("Call refused", fields);
      throw error;
    }
  };
}
