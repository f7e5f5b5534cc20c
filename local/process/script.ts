/** Arguments of node to run a TypeScript file of this repository from any working folder. */
export function scriptArguments(file: string, args: readonly string[]): string[] {
  return ["--import", import.meta.resolve("tsx"), file, ...args];
}
