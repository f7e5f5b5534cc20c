import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { WireError } from "./wire-error.ts";

/** One call of the protocol: plain values to bytes and back, for both ends. `Req` is what a client gives, `In` what a server gets. */
export interface Rpc<Req, In, Res> {
  /** For example `cnpgi.wal.v1.WAL`. */
  readonly service: string;
  readonly path: string;
  /** For messages: service and method, for example `WAL.Archive`. */
  readonly label: string;
  encodeRequest(request: Req): Uint8Array;
  decodeRequest(bytes: Uint8Array): In;
  encodeResponse(response: Res): Uint8Array;
  decodeResponse(bytes: Uint8Array): Res;
}

export interface Translation<I extends DescMessage, O extends DescMessage, Req, In, Res> {
  toRequest(request: Req): MessageInitShape<I>;
  fromRequest(message: MessageShape<I>): In;
  toResponse(response: Res): MessageInitShape<O>;
  fromResponse(message: MessageShape<O>): Res;
}

/** Binds a method of the generated code to its translation. */
export function defineRpc<I extends DescMessage, O extends DescMessage, Req, In, Res>(
  method: DescMethodUnary<I, O>,
  translation: Translation<I, O, Req, In, Res>,
): Rpc<Req, In, Res> {
  const label = `${method.parent.name}.${method.name}`;
  return {
    service: method.parent.typeName,
    path: `/${method.parent.typeName}/${method.name}`,
    label,
    encodeRequest: (request) => encode(method.input, translation.toRequest(request)),
    decodeRequest: (bytes) => translation.fromRequest(decode(method.input, bytes, label)),
    encodeResponse: (response) => encode(method.output, translation.toResponse(response)),
    decodeResponse: (bytes) => translation.fromResponse(decode(method.output, bytes, label)),
  };
}

/** Translation of an empty message. */
export const nothing = {
  to: () => ({}),
  from: () => undefined,
} as const;

function encode<T extends DescMessage>(schema: T, value: MessageInitShape<T>): Uint8Array {
  return toBinary(schema, create(schema, value));
}

function decode<T extends DescMessage>(schema: T, bytes: Uint8Array, label: string): MessageShape<T> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw new WireError(`${label}: the bytes are no ${schema.typeName}`, { cause });
  }
}
