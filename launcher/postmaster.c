/* Forking the postmaster as the runtime asks: its own process group, output into the FIFOs. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void say_and_end(int fd, const char *what, const char *on)
{
	char text[512];
	int n = snprintf(text, sizeof text, "cannot %s %s: %s", what, on, strerror(errno));
	(void)!write(fd, text, (size_t)(n < (int)sizeof text ? n : (int)sizeof text - 1));
	_exit(127);
}

static void output_to(int report, int fd, const char *fifo)
{
	char path[PATH_MAX], name[64];
	snprintf(name, sizeof name, "log/%s", fifo);
	/* Opened anew: the launcher's own descriptor does not block, the postmaster's must. */
	int out = path_join(path, base, name) ? -1 : open(path, O_WRONLY);
	if (out < 0 || dup2(out, fd) < 0)
		say_and_end(report, "open", path);
	if (out != fd)
		close(out);
}

static void become(const struct frame *f, int argc, int report)
{
	char **args = f->field + 4;
	int count = f->count - 4 - argc, kept = 0;
	char **env = calloc((size_t)count + 16, sizeof *env), **copy = calloc((size_t)argc + 1, sizeof *copy);
	if (!env || !copy)
		say_and_end(report, "start", args[0]);
	memcpy(copy, args, (size_t)argc * sizeof *args);
	memcpy(env, args + argc, (size_t)count * sizeof *env);
	const char *name, *value;
	for (int i = 0; i < 15 && (name = environment_kept(i, &value)); i++) {
		size_t n = strlen(name);
		int given = 0;
		for (int k = 0; k < count; k++)
			given |= !strncmp(env[k], name, n) && env[k][n] == '=';
		if (!given && value && asprintf(&env[count + kept], "%s=%s", name, value) > 0)
			kept++;
	}
	if (setpgid(0, 0))
		say_and_end(report, "make a process group for", args[0]);
	if (chdir(f->field[2]))
		say_and_end(report, "enter the folder", f->field[2]);
	int null = open("/dev/null", O_RDONLY);
	if (null >= 0 && null != 0) {
		dup2(null, 0);
		close(null);
	}
	output_to(report, 1, "postmaster.out");
	output_to(report, 2, "postmaster.err");
	signals_reset();
	environ = env; /* execvp looks the program up in the new PATH */
	execvp(copy[0], copy);
	say_and_end(report, "start", copy[0]);
}

/* The outcome arrives at s->fd: reading it here could wait for a hung disk. */
int postmaster_fork(const struct frame *f, struct spawn *s, char *error, size_t size)
{
	int ends[2], argc = f->count > 3 ? atoi(f->field[3]) : 0;
	if (f->count < 5 || argc < 1 || argc > f->count - 4) {
		snprintf(error, size, "malformed spawn request: %d fields, argument count %d", f->count, argc);
		return -1;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		snprintf(error, size, "no pipe: %s", strerror(errno));
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0)
		become(f, argc, ends[1]);
	int saved = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		snprintf(error, size, "no new process: %s", strerror(saved));
		return -1;
	}
	s->pid = pid;
	s->fd = ends[0];
	snprintf(s->id, sizeof s->id, "%s", f->field[1]);
	return 0;
}
