/* Starting node with the libraries it came with, whatever libc the image has. */
#define _GNU_SOURCE
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Meant by the image or the user for PostgreSQL; in node they would load foreign code or undo what is set below. */
static const char *const foreign[] = {"LD_PRELOAD", "NODE_OPTIONS", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_"};
enum { FOREIGN = sizeof foreign / sizeof *foreign };
static const char *kept[FOREIGN];

void environment_keep(void)
{
	for (int i = 0; i < FOREIGN; i++) {
		const char *value = getenv(foreign[i]);
		kept[i] = value ? strdup(value) : NULL;
	}
}

/* One of the variables kept for the postmaster and its value, by number; NULL behind the last one. */
const char *environment_kept(int number, const char **value)
{
	if (number >= FOREIGN)
		return NULL;
	*value = kept[number];
	return foreign[number];
}

/* Node's threads allocate little: a heap for each of them, and freed memory kept in it, cost 12 MB resident. */
static void environment_for_runtime(void)
{
	for (int i = 0; i < FOREIGN; i++)
		unsetenv(foreign[i]);
	setenv("MALLOC_ARENA_MAX", "1", 1);
	setenv("MALLOC_TRIM_THRESHOLD_", "131072", 1);
}

void signals_reset(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static int find_loader(const char *lib, char *path)
{
	struct dirent *de;
	int found = 0;
	DIR *d = opendir(lib);
	while (d && !found && (de = readdir(d)))
		found = !strncmp(de->d_name, "ld-linux", 8) && !path_join(path, lib, de->d_name);
	if (d)
		closedir(d);
	return found;
}

/* Options for node itself: one a line in runtime/node-args. */
static int read_node_args(const char *folder, char *text, size_t size, char **into, int room)
{
	char path[PATH_MAX], *at = NULL;
	int count = 0, fd = path_join(path, folder, "node-args") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	for (char *line = strtok_r(text, "\n", &at); line && count < room; line = strtok_r(NULL, "\n", &at))
		into[count++] = line;
	return count;
}

void runtime_exec(int argc, char **argv, const char *bundle)
{
	static char folder[PATH_MAX], lib[PATH_MAX], loader[PATH_MAX], node[PATH_MAX], script[PATH_MAX], options[4096];
	char **args = calloc((size_t)argc + 48, sizeof *args);
	int n = 0;
	if (!args || path_join(folder, base, "runtime") || path_join(lib, folder, "lib") ||
	    path_join(node, folder, "node") || path_join(script, folder, bundle))
		return;
	if (find_loader(lib, loader)) {
		args[n++] = loader;
		args[n++] = "--inhibit-cache"; /* the image's cache names the image's libraries */
		args[n++] = "--library-path";
		args[n++] = lib;
	}
	args[n++] = node;
	n += read_node_args(folder, options, sizeof options, args + n, 32);
	args[n++] = script;
	for (int i = 1; i < argc; i++)
		args[n++] = argv[i];
	environment_for_runtime();
	signals_reset();
	execv(args[0], args);
	int saved = errno;
	log_msg("error", "cannot start %s: %s", args[0], strerror(saved));
	free(args);
	errno = saved;
}
