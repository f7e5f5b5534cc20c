// First process of a PID namespace. It waits for the end, and takes in the processes whose parents have gone.
// Of a pod it is started without arguments and ends when asked to. Of a node or of the local cluster it has one
// argument, by which it can be recognised, and ends by SIGKILL only, after everything else.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void finish(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static void reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(int argc, char **argv) {
  (void)argv;
  struct sigaction end = {.sa_handler = argc > 1 ? SIG_IGN : finish};
  struct sigaction child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  if (sigaction(SIGTERM, &end, NULL) != 0 || sigaction(SIGINT, &end, NULL) != 0 ||
      sigaction(SIGCHLD, &child, NULL) != 0) {
    return 1;
  }
  for (;;) {
    pause();
  }
}
