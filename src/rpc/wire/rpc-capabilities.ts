import type { DescEnum } from "@bufbuild/protobuf";
import { enumName, enumNumber } from "./enum-name.ts";
import { WireError } from "./wire-error.ts";

/** An element `{ rpc: { type } }` as five of the services list their capabilities. */
interface RpcCapability {
  type: { case: "rpc"; value: { type: number } } | { case: undefined; value?: undefined };
}

/** Names of the capabilities in an answer; an element without its member breaks the protocol. */
export function capabilityNames(type: DescEnum, elements: readonly RpcCapability[]): readonly string[] {
  return elements.map((element) => {
    if (element.type.case !== "rpc") {
      throw new WireError(`${type.typeName}: an element of the capabilities names no rpc`);
    }
    return enumName(type, element.type.value.type);
  });
}

/** The elements of an answer. The member is always set, because a Go client dies on an element without it. */
export function capabilityElements(type: DescEnum, names: readonly string[]) {
  return names.map((name) => ({ type: { case: "rpc", value: { type: enumNumber(type, name) } } as const }));
}
