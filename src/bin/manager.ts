import { Command, CommanderError, Option } from "commander";

/** Flags that `instance` commands share. */
type Flags = Record<string, string | boolean | undefined>;

/** Commands of the original that this version does not carry out. */
const missingCommands: readonly (readonly [group: string, name: string])[] = [
  ["instance", "upgrade"],
  ["pgbouncer", "run"],
];

function addLogFlags(command: Command): Command {
  return command
    .option("--log-level <level>", "error, warning, info, debug or trace", "info")
    .option("--log-destination <path>", "file or named pipe to log to instead of stderr")
    .option("--log-field-level <key>", "JSON key of the level", "level")
    .option("--log-field-timestamp <key>", "JSON key of the time", "ts")
    .addOption(new Option("--zap-devel [value]").hideHelp())
    .addOption(new Option("--zap-encoder <value>").hideHelp())
    .addOption(new Option("--zap-log-level <value>").hideHelp())
    .addOption(new Option("--zap-stacktrace-level <value>").hideHelp())
    .addOption(new Option("--zap-time-encoding <value>").hideHelp());
}

function addInstanceFlags(command: Command): Command {
  return addLogFlags(command)
    .option("--pod-name <name>", "name of this pod [POD_NAME]")
    .option("--cluster-name <name>", "name of the Cluster [CLUSTER_NAME]")
    .option("--namespace <name>", "namespace of the Cluster [NAMESPACE]")
    .option("--pg-data <folder>", "data folder [PGDATA]");
}

function text(value: string | boolean | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function addInit(instance: Command): void {
  addInstanceFlags(instance.command("init").description("make a new data folder"))
    .option("--app-db-name <name>")
    .option("--app-user <name>")
    .option("--parent-node <host>")
    .option("--pg-wal <folder>")
    .option("--initdb-flags <flags>")
    .option("--post-init-sql <statements>")
    .option("--post-init-application-sql <statements>")
    .option("--post-init-template-sql <statements>")
    .option("--post-init-sql-refs-folder <folder>")
    .option("--post-init-application-sql-refs-folder <folder>")
    .option("--post-init-template-sql-refs-folder <folder>")
    .action(async (flags: Flags) => {
      const { initCommand } = await import("../instance/commands.ts");
      await initCommand(flags, {
        initdbFlags: text(flags["initdbFlags"]),
        appDatabase: text(flags["appDbName"]),
        appUser: text(flags["appUser"]),
        sql: text(flags["postInitSql"]),
        applicationSql: text(flags["postInitApplicationSql"]),
        templateSql: text(flags["postInitTemplateSql"]),
        sqlFolder: text(flags["postInitSqlRefsFolder"]),
        applicationSqlFolder: text(flags["postInitApplicationSqlRefsFolder"]),
        templateSqlFolder: text(flags["postInitTemplateSqlRefsFolder"]),
      });
    });
}

function addRestoreSnapshot(instance: Command): void {
  addInstanceFlags(instance.command("restoresnapshot").description("start from the snapshot of a volume"))
    .option("--pg-wal <folder>")
    .option("--immediate", "for a new replica")
    .option("--backuplabel <base64>")
    .option("--tablespacemap <base64>")
    .action(async (flags: Flags) => {
      const { restoreSnapshotCommand } = await import("../instance/commands.ts");
      await restoreSnapshotCommand(flags, {
        immediate: flags["immediate"] === true,
        backupLabel: text(flags["backuplabel"]),
        tablespaceMap: text(flags["tablespacemap"]),
      });
    });
}

function addInstance(program: Command): void {
  const instance = program.command("instance").description("manage one PostgreSQL instance");
  addInit(instance);
  addInstanceFlags(instance.command("join").description("clone the primary into a new standby"))
    .option("--pg-wal <folder>")
    .option("--parent-node <host>")
    .action(async (flags: Flags) => {
      const { joinCommand } = await import("../instance/commands.ts");
      await joinCommand(flags);
    });
  addInstanceFlags(instance.command("pgbasebackup").description("copy a server that runs elsewhere"))
    .option("--pg-wal <folder>")
    .action(async (flags: Flags) => {
      const { pgBaseBackupCommand } = await import("../instance/commands.ts");
      await pgBaseBackupCommand(flags);
    });
  addInstanceFlags(instance.command("restore").description("restore a backup and recover"))
    .option("--pg-wal <folder>")
    .action(async (flags: Flags) => {
      const { restoreCommand } = await import("../instance/commands.ts");
      await restoreCommand(flags);
    });
  addRestoreSnapshot(instance);
  addInstanceFlags(instance.command("run").description("run the instance"))
    .option("--pprof-server", "serve profiles of this process on port 6060 of localhost")
    .option("--status-port-tls", "serve the status port over TLS")
    .option("--metrics-port-tls", "serve the metrics port over TLS")
    .action(async (flags: Flags) => {
      const { runCommand } = await import("../instance/commands.ts");
      await runCommand(flags);
    });
  addLogFlags(instance.command("status").description("print the status of the running instance")).action(async () => {
    const { statusCommand } = await import("../instance/status-command.ts");
    process.stdout.write(`${await statusCommand(process.env)}\n`);
  });
}

function addWal(program: Command): void {
  const walFlags = (command: Command) => addLogFlags(command).option("--pod-name <name>").option("--pg-data <folder>");
  walFlags(program.command("wal-archive").argument("<name>")).action(async (name: string) => {
    const { walCommand } = await import("../instance/wal/wal-command.ts");
    process.exitCode = await walCommand(["wal-archive", name]);
  });
  walFlags(program.command("wal-restore").argument("<name>").argument("<destination>")).action(
    async (name: string, destination: string) => {
      const { walCommand } = await import("../instance/wal/wal-command.ts");
      process.exitCode = await walCommand(["wal-restore", name, destination]);
    },
  );
}

function addSmallCommands(program: Command): void {
  addLogFlags(program.command("bootstrap").argument("<target>").description("copy launcher and runtime")).action(() => {
    throw new Error("bootstrap is the launcher's work: run it as /manager bootstrap TARGET");
  });
  addLogFlags(program.command("backup").argument("<name>").description("start a Backup in this instance")).action(
    async (name: string) => {
      const { backupCommand } = await import("../instance/backup/backup-command.ts");
      process.stderr.write(`${await backupCommand(name, process.env)}\n`);
    },
  );
  const show = program.command("show").description("show facts about the instance");
  addLogFlags(show.command("wal-archive-queue")).action(async () => {
    const { listArchiveQueue } = await import("../instance/wal/wal-command.ts");
    for (const name of await listArchiveQueue(process.env)) process.stdout.write(`${name}\n`);
  });
  const debug = program.command("debug").description("facts for support");
  addLogFlags(debug.command("show-architectures")).action(async () => {
    const { listArchitectures } = await import("../instance/architectures.ts");
    process.stdout.write(`${JSON.stringify(await listArchitectures(process.argv[1] ?? ""), null, 4)}\n`);
  });
  addLogFlags(program.command("version")).action(async () => {
    const { formatVersion } = await import("../instance/version.ts");
    process.stdout.write(`${await formatVersion(process.argv[1] ?? "")}\n`);
  });
}

function addMissing(program: Command): void {
  for (const [group, name] of missingCommands) {
    const parent =
      group === "" ? program : (program.commands.find((command) => command.name() === group) ?? program.command(group));
    parent
      .command(name)
      .allowUnknownOption()
      .allowExcessArguments()
      .action(() => {
        throw new Error(`${[group, name].filter(Boolean).join(" ")} is not available in this version`);
      });
  }
}

/** Flags of the log may stand before a command or after it; wherever they stand, it is the program that takes them. */
function handOnLogFlags(program: Command): void {
  program.hook("preAction", (_program, command) => {
    for (const [name, value] of Object.entries(program.opts())) {
      if (program.getOptionValueSource(name) === "cli") command.setOptionValue(name, value);
    }
  });
}

async function main(): Promise<number> {
  const program = addLogFlags(new Command("manager"));
  program.exitOverride().showHelpAfterError(false);
  handOnLogFlags(program);
  addInstance(program);
  addWal(program);
  addSmallCommands(program);
  addMissing(program);
  const override = (command: Command): void => {
    for (const child of command.commands) {
      child.exitOverride();
      override(child);
    }
  };
  override(program);
  try {
    await program.parseAsync(process.argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its own message already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

main().then(
  (code) => process.exit(code),
  () => process.exit(1),
);
