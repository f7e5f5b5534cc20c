/* Which command does what: the table of docs/adr/0001-launcher-and-runtime.md. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return 1;
	return 0;
}

/* Commands that touch PGDATA. */
static int needs_lock(const char *verb, const char *sub, const char *third)
{
	static const char *const locked[] = {"init", "join", "pgbasebackup", "restore", "restoresnapshot", "run", NULL};
	if (strcmp(verb, "instance"))
		return 0;
	return is_one_of(sub, locked) || (!strcmp(sub, "upgrade") && !strcmp(third, "execute"));
}

/* The kernel drops what the first process of a pod neither handles nor blocks; what is blocked waits for its reader. */
static int signals_block(sigset_t *taken, sigset_t *before)
{
	static const int relayed[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGCHLD};
	sigemptyset(taken);
	for (size_t i = 0; i < sizeof relayed / sizeof *relayed; i++)
		sigaddset(taken, relayed[i]);
	return sigprocmask(SIG_BLOCK, taken, before);
}

static const char *bundle_for(const char *verb)
{
	char path[PATH_MAX];
	if (!strcmp(verb, "controller") && !path_join(path, base, "runtime/operator.cjs") && !access(path, R_OK))
		return "operator.cjs";
	return "manager.cjs";
}

int main(int argc, char **argv)
{
	sigset_t taken, before;
	int blocked = !signals_block(&taken, &before); /* first of all: a stop that comes sooner is lost */
	base_find();
	flags_for_log(argc, argv);
	environment_keep();

	int at = 1; /* persistent flags may stand before the command */
	while (at < argc && !strncmp(argv[at], "--", 2) && strchr(argv[at], '='))
		at++;
	const char *verb = at < argc ? argv[at] : "", *sub = at + 1 < argc ? argv[at + 1] : "",
		   *third = at + 2 < argc ? argv[at + 2] : "";

	int copies = !strcmp(verb, "bootstrap") && *sub && *sub != '-';
	int client = (!strcmp(verb, "wal-archive") || !strcmp(verb, "wal-restore")) && strcmp(sub, "--help") && strcmp(sub, "-h");
	if (blocked && (copies || client)) /* they end by a signal as any program does */
		sigprocmask(SIG_SETMASK, &before, NULL);
	if (copies)
		return bootstrap(sub);
	if (client)
		return wal_client(argc - at + 1, argv + at - 1);

	int first = getpid() == 1, run = !strcmp(verb, "instance") && !strcmp(sub, "run");
	struct supervise with = {.argc = argc, .argv = argv, .bundle = bundle_for(verb), .once = !run, .lock_fd = -1};
	signal(SIGPIPE, SIG_IGN);
	with.sigfd = blocked ? signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	if (with.sigfd < 0) {
		log_msg("error", "cannot take over signals: %s", strerror(errno));
		return 1;
	}
	with.successor = first && run && handover_read(&with.from);
	if (with.successor)
		with.lock_fd = with.from.lock_fd;
	else if (needs_lock(verb, sub, third))
		with.lock_fd = lock_volume(flag_value(argc, argv, "pg-data", getenv("PGDATA")), with.sigfd);
	if (!first) {
		runtime_exec(argc, argv, with.bundle);
		return 1;
	}
	/* A job logs through the same pipes; the image need not have a program that makes them. */
	if (!strcmp(verb, "instance") && !run && fifo_open())
		log_msg("warning", "cannot make the folders and FIFOs under %s: %s", base, strerror(errno));
	if (run) /* so that a dead disk cannot page us out; where the limit forbids it we are small anyway */
		(void)mlockall(MCL_CURRENT);
	return supervise(&with);
}
