/* Replacing launcher and runtime in place: swap the files, then execve with everything that must live on. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE "CNPG_LAUNCHER_STATE"
#define NOTE "CNPG_LAUNCHER_NOTE"

static int fail(char *error, size_t size, const char *what, const char *path)
{
	snprintf(error, size, "cannot %s %s: %s", what, path, strerror(errno));
	return -1;
}

/* Exchanges launcher and runtime with the staged ones; calling it twice puts things back. */
int upgrade_swap(const char *staged, char *error, size_t size)
{
	char launcher[PATH_MAX], runtime[PATH_MAX], node[PATH_MAX], here[PATH_MAX], there[PATH_MAX];
	if (path_join(launcher, staged, "manager") || path_join(runtime, staged, "runtime") ||
	    path_join(node, runtime, "node") || path_join(here, base, "manager") || path_join(there, base, "runtime"))
		return fail(error, size, "use", staged);
	if (access(launcher, X_OK))
		return fail(error, size, "run the staged launcher", launcher);
	if (access(node, X_OK))
		return fail(error, size, "run the staged runtime", node);
	if (exchange(runtime, there))
		return fail(error, size, "put in place", runtime);
	if (exchange(launcher, here)) {
		fail(error, size, "put in place", launcher);
		if (exchange(runtime, there))
			log_msg("error", "the runtime of the failed upgrade stays in place: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static void keep_over_exec(const struct handover *h, int keep)
{
	for (int i = 0; i < FIFO_COUNT; i++)
		fcntl(fifo_fd[i], F_SETFD, keep ? 0 : FD_CLOEXEC);
	(void)h; /* the lock is kept over every exec anyway */
}

int upgrade_exec(const struct handover *h, char **argv, char *error, size_t size)
{
	char state[512], path[PATH_MAX];
	if (path_join(path, base, "manager"))
		return fail(error, size, "use", base);
	snprintf(state, sizeof state, "1 %d %d %d %d %d %d %d %d %" PRId64 " %" PRIu64 " %d %d %d %d %d", h->lock_fd,
		 h->runtime, h->postmaster, h->postmaster_ever, h->term, h->exit_pid, h->exit_code, h->exit_signal,
		 h->deadline_ns, h->dropped, fifo_fd[0], fifo_fd[1], fifo_fd[2], fifo_fd[3], fifo_fd[4]);
	if (setenv(STATE, state, 1) || (h->note && setenv(NOTE, h->note, 1)))
		return fail(error, size, "pass the state to", path);
	keep_over_exec(h, 1);
	execv(path, argv);
	fail(error, size, "start", path);
	keep_over_exec(h, 0);
	unsetenv(STATE);
	unsetenv(NOTE);
	return -1;
}

int handover_read(struct handover *h)
{
	int version = 0;
	const char *state = getenv(STATE);
	if (!state)
		return 0;
	int n = sscanf(state, "%d %d %d %d %d %d %d %d %d %" SCNd64 " %" SCNu64 " %d %d %d %d %d", &version,
		       &h->lock_fd, &h->runtime, &h->postmaster, &h->postmaster_ever, &h->term, &h->exit_pid,
		       &h->exit_code, &h->exit_signal, &h->deadline_ns, &h->dropped, &fifo_fd[0], &fifo_fd[1],
		       &fifo_fd[2], &fifo_fd[3], &fifo_fd[4]);
	unsetenv(STATE);
	const char *note = getenv(NOTE);
	h->note = note ? strdup(note) : NULL;
	unsetenv(NOTE);
	if (version == 1 && n == 16)
		return 1;
	/* Without it the postmaster would be nobody's: end, and let the kubelet start afresh. */
	log_msg("error", "cannot read the state of the launcher before this one");
	exit(1);
}
