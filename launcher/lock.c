/* One postmaster per volume: an open-file-description lock beside PGDATA, held by everything that inherits it. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* A TERM or INT while we wait ends us: nothing has been started yet. */
static void wait_or_leave(int sigfd, int ms)
{
	struct pollfd p = {.fd = sigfd, .events = POLLIN};
	struct signalfd_siginfo si;
	if (poll(&p, 1, ms) != 1 || read(sigfd, &si, sizeof si) != sizeof si)
		return;
	if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT) {
		log_msg("info", "signal %u while waiting for the volume lock, ending", si.ssi_signo);
		exit(128 + (int)si.ssi_signo);
	}
}

int lock_volume(const char *pgdata, int sigfd)
{
	char folder[PATH_MAX], path[PATH_MAX];
	if (!pgdata || !*pgdata || strlen(pgdata) >= sizeof folder) {
		log_msg("error", "no data folder to lock: give --pg-data or set PGDATA");
		exit(1);
	}
	strcpy(folder, pgdata);
	folder_of(folder);
	if (path_join(path, folder, ".cnpg-ts.lock"))
		exit(1);
	int low = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);
	if (low < 0) {
		log_msg("error", "cannot open the volume lock %s: %s; is the data volume mounted and writable?", path,
			strerror(errno));
		exit(errno == ENOSPC || errno == EDQUOT ? 4 : 1);
	}
	/* Without close-on-exec and above the channel's number: the postmaster and its backends inherit it, so the
	 * volume stays locked until the last process that may write to it is gone, also one stuck in the kernel. */
	int fd = fcntl(low, F_DUPFD, 64);
	if (fd < 0) {
		log_msg("error", "cannot keep the volume lock %s: %s", path, strerror(errno));
		exit(1);
	}
	close(low);
	int64_t told = 0;
	for (;;) {
		struct flock want = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		if (!fcntl(fd, F_OFD_SETLK, &want)) {
			if (told)
				log_msg("info", "got the volume lock %s", path);
			return fd;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EACCES) {
			log_msg("warning", "the file system of %s has no file locks (%s): going on without", path,
				strerror(errno));
			close(fd);
			return -1;
		}
		if (!told || now_ms() - told >= 5000) {
			log_msg("info", "another instance still uses the volume, waiting for its lock %s", path);
			told = now_ms();
		}
		wait_or_leave(sigfd, 100);
	}
}
