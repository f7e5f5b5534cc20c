/* Where we are, and how our own files get to where they are needed. */
#define _GNU_SOURCE
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

char base[PATH_MAX];
static char self[PATH_MAX];

/* Cuts a path down to its folder, in place. */
void folder_of(char *path)
{
	char *folder = dirname(path);
	if (folder != path)
		memmove(path, folder, strlen(folder) + 1);
}

void base_find(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0) /* no /proc: the name that execve was given */
		n = snprintf(self, sizeof self, "%s", (const char *)getauxval(AT_EXECFN));
	self[n] = 0;
	strcpy(base, self);
	folder_of(base);
}

int path_join(char *out, const char *folder, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", name);
	if (n < PATH_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

static int copy_bytes(int in, int out)
{
	static char block[1 << 17];
	for (;;) {
		/* The kernel copies (or shares blocks) where both sides allow it; else by hand. */
		ssize_t n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);
		if (n == 0)
			break; /* also said by special files: the loop below decides */
		if (n < 0 && errno != EINTR)
			break;
	}
	ssize_t n;
	while ((n = read(in, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(out, block + at, (size_t)(n - at));
			if (w < 0 && errno != EINTR)
				return -1;
			at += w > 0 ? w : 0;
		}
	}
	return 0;
}

int copy_file(const char *from, const char *to, mode_t mode)
{
	char temp[PATH_MAX];
	if (snprintf(temp, sizeof temp, "%s.new", to) >= (int)sizeof temp) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return -1;
	if (unlink(temp) && errno != ENOENT) {
		close(in);
		return -1;
	}
	int out = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int bad = out < 0 || copy_bytes(in, out) || fchmod(out, mode);
	int saved = errno;
	close(in);
	if (out >= 0 && close(out) && !bad)
		bad = 1, saved = errno;
	if (!bad && rename(temp, to))
		bad = 1, saved = errno;
	if (bad && out >= 0)
		unlink(temp);
	errno = saved;
	return bad ? -1 : 0;
}

static int each_entry(const char *from, const char *to, int (*act)(const char *, const char *))
{
	char a[PATH_MAX], b[PATH_MAX] = "";
	struct dirent *de;
	DIR *d = opendir(from);
	if (!d)
		return -1;
	int bad = 0;
	while (!bad && (de = readdir(d))) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		bad = path_join(a, from, de->d_name) || (to && path_join(b, to, de->d_name)) || act(a, b);
	}
	int saved = errno;
	closedir(d);
	errno = saved;
	return bad ? -1 : 0;
}

int copy_tree(const char *from, const char *to)
{
	struct stat st;
	if (stat(from, &st))
		return -1;
	if (!S_ISDIR(st.st_mode))
		return copy_file(from, to, st.st_mode & 0777);
	if (mkdir(to, 0755))
		return -1;
	return each_entry(from, to, copy_tree);
}

static int remove_entry(const char *path, const char *unused)
{
	struct stat st;
	(void)unused;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(st.st_mode))
		return unlink(path);
	return each_entry(path, NULL, remove_entry) || rmdir(path) ? -1 : 0;
}

int remove_tree(const char *path)
{
	return remove_entry(path, NULL);
}

/* Puts `a` in the place of `b`, and what was there in the place of `a`. */
int exchange(const char *a, const char *b)
{
	char aside[PATH_MAX];
	if (!renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE))
		return 0;
	if (errno == ENOENT)
		return rename(a, b);
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* A file system that cannot exchange: three renames, and back if the middle one fails. */
	if (snprintf(aside, sizeof aside, "%s.old", b) >= (int)sizeof aside)
		return errno = ENAMETOOLONG, -1;
	if (remove_tree(aside) || rename(b, aside))
		return -1;
	if (rename(a, b)) {
		int saved = errno;
		rename(aside, b);
		errno = saved;
		return -1;
	}
	return rename(aside, a);
}

static int complain(const char *what, const char *path)
{
	log_msg("error", "cannot %s %s: %s", what, path, strerror(errno));
	return 2;
}

/* `bootstrap TARGET`: the launcher to TARGET, the runtime beside it; node is not started. */
int bootstrap(const char *target)
{
	char folder[PATH_MAX], runtime[PATH_MAX], staged[PATH_MAX], place[PATH_MAX];
	if (strlen(target) >= sizeof folder)
		return errno = ENAMETOOLONG, complain("use", target);
	strcpy(folder, target);
	folder_of(folder);
	if (path_join(runtime, base, "runtime") || path_join(staged, folder, "runtime.new") ||
	    path_join(place, folder, "runtime"))
		return complain("use", folder);
	if (remove_tree(staged))
		return complain("remove", staged);
	if (copy_tree(runtime, staged))
		return complain("copy the runtime to", staged);
	if (exchange(staged, place))
		return complain("put the runtime in place at", place);
	if (remove_tree(staged))
		return complain("remove", staged);
	if (copy_file(self, target, 0750))
		return complain("copy the launcher to", target);
	log_msg("info", "installed the manager at %s", target);
	return 0;
}
