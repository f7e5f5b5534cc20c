/* The log FIFOs, and the process that empties them into the spill file while no runtime reads. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const fifo_names[FIFO_COUNT] = {"postgres", "postgres.csv", "postgres.json", "postmaster.out",
					    "postmaster.err"};
int fifo_fd[FIFO_COUNT] = {-1, -1, -1, -1, -1};

/* Lines dropped; shared with the spill process, so that its end by SIGKILL loses no count. */
static _Atomic uint64_t *dropped;
static int stop_fd = -1;

static int make_folder(const char *name, char *path)
{
	if (path_join(path, base, name))
		return -1;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -1;
	return chmod(path, 0700);
}

int fifo_open(void)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct stat st;
	dropped = mmap(NULL, sizeof *dropped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (dropped == MAP_FAILED)
		return -1;
	if (make_folder("ipc", folder) || make_folder("log", folder))
		return -1;
	alone_mark(0);
	for (int i = 0; i < FIFO_COUNT; i++) {
		if (fifo_fd[i] >= 0) { /* handed over by the launcher before us */
			fcntl(fifo_fd[i], F_SETFD, FD_CLOEXEC);
			continue;
		}
		if (path_join(path, folder, fifo_names[i]))
			return -1;
		if (!lstat(path, &st) && !S_ISFIFO(st.st_mode) && remove_tree(path))
			return -1;
		if (mkfifo(path, 0600) && errno != EEXIST)
			return -1;
		if (chmod(path, 0600))
			return -1;
		fifo_fd[i] = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fifo_fd[i] < 0)
			return -1;
		/* Room for the moment between a runtime's death and the spill process's first read; best effort. */
		(void)fcntl(fifo_fd[i], F_SETPIPE_SZ, 1 << 18);
	}
	return 0;
}

void spill_path(char *path)
{
	struct stat st;
	if (path_join(path, base, "ipc/spill") || stat(path, &st) || st.st_size == 0)
		path[0] = 0;
}

uint64_t spill_dropped(void)
{
	return atomic_load(dropped);
}

void spill_dropped_set(uint64_t lines)
{
	atomic_store(dropped, lines);
}

static void drop(const unsigned char *data, size_t len)
{
	uint64_t lines = 0;
	for (size_t i = 0; i < len; i++)
		lines += data[i] == '\n';
	atomic_fetch_add(dropped, lines);
}

/* As much as one read takes from a pipe. */
#define SPILL_BLOCK 65536

struct spill {
	int fd, full;
	off_t size;
};

/* Opens the file and cuts off a record that an earlier spill process could not finish. */
static int spill_open(struct spill *s)
{
	char path[PATH_MAX];
	struct stat st;
	if (path_join(path, base, "ipc/spill"))
		return -1;
	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->fd < 0 || fstat(s->fd, &st))
		return -1;
	for (s->size = 0; s->size < st.st_size;) {
		unsigned char head[5];
		if (pread(s->fd, head, 5, s->size) != 5)
			break;
		off_t end = s->size + 5 + ((off_t)head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4]);
		if (end > st.st_size)
			break;
		s->size = end;
	}
	return ftruncate(s->fd, s->size);
}

static int spill_record(struct spill *s, int index, const unsigned char *data, size_t len)
{
	static unsigned char record[5 + SPILL_BLOCK];
	record[0] = (unsigned char)index;
	record[1] = (unsigned char)(len >> 24);
	record[2] = (unsigned char)(len >> 16);
	record[3] = (unsigned char)(len >> 8);
	record[4] = (unsigned char)len;
	memcpy(record + 5, data, len);
	for (size_t at = 0; at < len + 5;) {
		ssize_t n = pwrite(s->fd, record + at, len + 5 - at, s->size + (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			(void)!ftruncate(s->fd, s->size);
			return -1;
		}
		at += (size_t)n;
	}
	s->size += (off_t)len + 5;
	return 0;
}

static void spill_store(struct spill *s, int index, const unsigned char *data, size_t len)
{
	size_t fits = len;
	if (s->fd < 0 && spill_open(s)) {
		if (s->fd >= 0)
			close(s->fd);
		s->fd = -1;
	}
	if (s->fd < 0 || s->full) {
		drop(data, len);
		return;
	}
	/* Whole lines only, and after the first loss nothing more, so that order holds. The room of one block is held back, so
	 * that a line whose beginning was kept can be ended. */
	off_t room = (off_t)SPILL_MAX - SPILL_BLOCK - 10 - s->size;
	if ((off_t)len > room) {
		s->full = 1;
		fits = room > 0 ? (size_t)room : 0;
		while (fits && data[fits - 1] != '\n')
			fits--;
		const unsigned char *end = fits ? NULL : memchr(data, '\n', len);
		if (end)
			fits = (size_t)(end - data) + 1;
		if (s->size + 5 + (off_t)fits > SPILL_MAX)
			fits = 0;
	}
	if (fits && spill_record(s, index, data, fits))
		fits = 0;
	drop(data + fits, len - fits);
}

static void spill_run(int stop)
{
	static unsigned char block[SPILL_BLOCK];
	struct spill s = {.fd = -1};
	struct pollfd p[FIFO_COUNT + 1];
	for (int i = 0; i < FIFO_COUNT; i++)
		p[i] = (struct pollfd){.fd = fifo_fd[i], .events = POLLIN};
	p[FIFO_COUNT] = (struct pollfd){.fd = stop, .events = POLLIN};
	for (;;) {
		if (poll(p, FIFO_COUNT + 1, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p[FIFO_COUNT].revents)
			_exit(0);
		for (int i = 0; i < FIFO_COUNT; i++) {
			ssize_t n = p[i].revents ? read(fifo_fd[i], block, sizeof block) : 0;
			if (n > 0)
				spill_store(&s, i, block, (size_t)n);
		}
	}
}

/* Nothing of the launcher may stay open here: a channel would never end, a lock never be freed. */
static void close_others(int keep)
{
	unsigned from = 3;
	for (unsigned next = from; from < ~0u; from = next + 1) {
		next = ~0u;
		for (int i = 0; i < FIFO_COUNT; i++)
			if ((unsigned)fifo_fd[i] >= from && (unsigned)fifo_fd[i] < next)
				next = (unsigned)fifo_fd[i];
		if ((unsigned)keep >= from && (unsigned)keep < next)
			next = (unsigned)keep;
		if (next > from)
			close_range(from, next == ~0u ? next : next - 1, 0);
		if (next == ~0u)
			return;
	}
}

/* A process of its own, because a write to a hung disk would hold up the launcher and with it the deadline. */
pid_t spill_start(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "launcher-spill");
		close_others(ends[0]);
		spill_run(ends[0]); /* signals stay blocked as in the launcher: only the pipe's end or SIGKILL ends it */
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return -1;
	}
	spill_stop();
	stop_fd = ends[1];
	return pid;
}

void spill_stop(void)
{
	if (stop_fd >= 0)
		close(stop_fd);
	stop_fd = -1;
}
