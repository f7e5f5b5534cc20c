import { judgeOperatingSystem, type OsRelease, type OsVerdict } from "../plan/instance/operating-system.ts";
import type { InstanceContext } from "./instance-context.ts";

/** Where a system describes itself; the second is where distributions keep it when `/etc` does not have it. */
const places = ["/etc/os-release", "/usr/lib/os-release"];

/** Tells in the log how long the image's base system will have updates; never fails, since nothing hangs on it. */
export async function reportOperatingSystem({
  files,
  clock,
  logger,
}: Pick<InstanceContext, "files" | "clock" | "logger">): Promise<void> {
  try {
    for (const place of places) {
      const text = await files.read(place);
      if (text === undefined) continue;
      report(logger, judgeOperatingSystem(text, clock.now()));
      return;
    }
  } catch (error) {
    logger.debug("The operating system of the image could not be read", { error });
  }
}

function report(logger: InstanceContext["logger"], verdict: OsVerdict): void {
  if (verdict.kind === "unknown") {
    logger.warning("OS distribution is not known, so nothing is said about its support", { version: verdict.version });
    return;
  }
  const entry = entryOf(verdict.release);
  if (verdict.kind === "supported") logger.info("OS distribution is supported", { entry });
  else if (verdict.kind === "deprecated")
    logger.warning("OS distribution is deprecated: use a newer image soon", { entry });
  else logger.warning("OS distribution is not supported any more: use a newer image", { entry });
}

/** The days as the original writes them. */
function entryOf({ version, deprecatedFrom, supportedUntil }: OsRelease): Record<string, string> {
  return {
    version,
    deprecatedFrom: `${deprecatedFrom}T00:00:00Z`,
    supportedUntil: `${supportedUntil}T00:00:00Z`,
  };
}
