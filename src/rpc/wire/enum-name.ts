import type { DescEnum } from "@bufbuild/protobuf";

/** The protocol's name of an enum value, for example `TYPE_ARCHIVE_WAL`; an unknown number stays a number, as in Go. */
export function enumName(type: DescEnum, value: number): string {
  return type.value[value]?.name ?? String(value);
}

/** The number of an enum value's name; a name that is only a number stands for itself. */
export function enumNumber(type: DescEnum, name: string): number {
  const found = type.values.find((value) => value.name === name);
  if (found) return found.number;
  if (/^\d+$/.test(name)) return Number(name);
  throw new TypeError(
    `${type.typeName} has no value ${name}; use one of ${type.values.map((value) => value.name).join(", ")}`,
  );
}
