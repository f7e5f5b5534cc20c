/** Script that prints the process ids of the instance manager's runtime, and not that of the shell that runs it. */
export const runtimePids =
  "for p in /proc/[0-9]*; do n=$(basename $p); [ $n != $$ ] && grep -qs runtime/manager.cjs $p/cmdline && echo $n; done; true";

/** Script that sends the runtime a signal, such as `KILL` or `STOP`. */
export const signalRuntime = (signal: string) => `kill -${signal} $(${runtimePids})`;
