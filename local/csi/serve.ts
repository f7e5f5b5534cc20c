import { rmSync } from "node:fs";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { CsiError } from "./csi-error.ts";

/** A call together with what answers it. */
export interface Handler {
  path: string;
  serve(bytes: Uint8Array): Promise<Uint8Array>;
}

/** Binds a call of a service to the function that answers it. */
export function answer<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  work: (request: MessageShape<I>) => Promise<MessageInitShape<O>> | MessageInitShape<O>,
): Handler {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    serve: async (bytes) => toBinary(method.output, create(method.output, await work(fromBinary(method.input, bytes)))),
  };
}

/** Serves calls on a unix socket; one that a former run left behind is replaced. */
export async function serve(socket: string, handlers: readonly Handler[]): Promise<void> {
  const server = new Server();
  for (const handler of handlers) {
    server.register<Uint8Array, Uint8Array>(
      handler.path,
      (call: ServerUnaryCall<Uint8Array, Uint8Array>, reply: sendUnaryData<Uint8Array>) => {
        void handle(handler, call.request, reply);
      },
      (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes) => bytes,
      "unary",
    );
  }
  rmSync(socket, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

async function handle(handler: Handler, bytes: Uint8Array, reply: sendUnaryData<Uint8Array>): Promise<void> {
  try {
    reply(null, await handler.serve(bytes));
  } catch (error) {
    const details = error instanceof Error ? error.message : String(error);
    console.error(`${new Date().toISOString()} ${handler.path}: ${details}`);
    reply({ code: error instanceof CsiError ? status[error.code] : status.INTERNAL, details });
  }
}
