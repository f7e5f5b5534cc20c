import { type StoreConfiguration, unknownArguments } from "../barman/store-configuration.ts";
import type { Logger } from "../ports/logger.ts";

/** Warns of additional command arguments that have no meaning here: Barman's own tools would fail on what they do not know. */
export function warnOfArguments(configuration: StoreConfiguration, logger: Logger): void {
  const passedOver = unknownArguments(configuration);
  if (passedOver.length === 0) return;
  logger.warning("Additional command arguments that mean nothing here are passed over", { arguments: passedOver });
}
