/* What /proc tells about other processes, and the clock that runs through suspend. */
#define _GNU_SOURCE
#include "launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct entry {
	pid_t pid, parent, session;
};

/* Next live process, or 0 at the end. Zombies are left out: they do nothing and are reaped elsewhere. */
static int next_process(DIR *d, struct entry *e)
{
	struct dirent *de;
	while ((de = readdir(d))) {
		char path[300], text[512];
		e->pid = (pid_t)atoi(de->d_name);
		if (e->pid <= 0)
			continue;
		snprintf(path, sizeof path, "/proc/%d/stat", e->pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t n = read(fd, text, sizeof text - 1);
		close(fd);
		if (n <= 0)
			continue;
		text[n] = 0;
		/* The command's name may hold blanks and parentheses, so start behind the last one. */
		char state, *after = strrchr(text, ')');
		int parent, group, session;
		if (!after || sscanf(after + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
			continue;
		if (state == 'Z' || state == 'X')
			continue;
		e->parent = (pid_t)parent;
		e->session = (pid_t)session;
		return 1;
	}
	return 0;
}

int session_signal(pid_t sid, int sig)
{
	int count = 0;
	struct entry e;
	DIR *d = sid > 1 ? opendir("/proc") : NULL;
	if (!d)
		return 0;
	while (next_process(d, &e)) {
		if (e.session != sid || e.pid == getpid())
			continue;
		count++;
		if (sig)
			kill(e.pid, sig);
	}
	closedir(d);
	return count;
}

int children_left(pid_t except)
{
	int count = 0;
	struct entry e;
	DIR *d = opendir("/proc");
	if (!d)
		return 0;
	while (next_process(d, &e))
		count += e.parent == getpid() && e.pid != except;
	closedir(d);
	return count;
}
