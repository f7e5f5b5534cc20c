/* `wal-archive` and `wal-restore`: ask the resident runtime, say what it said. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 10000

static void report(const char *destination, const char *verb, const char *level, const char *msg)
{
	char line[4096];
	int n = log_format(line, sizeof line, level, verb, msg);
	int fd = 2;
	/* Read-write so that a FIFO never blocks the opening; without waiting, so that a full one never blocks PostgreSQL. */
	if (destination)
		fd = open(destination, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
	if (fd < 0)
		fd = 2;
	if (write(fd, line, (size_t)n) < 0 && fd != 2)
		(void)!write(2, line, (size_t)n);
}

static int alone_path(char *path)
{
	return path_join(path, base, "ipc/alone");
}

void alone_mark(int set)
{
	char path[PATH_MAX];
	if (alone_path(path))
		return;
	int fd = set ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		close(fd);
	if (!set)
		unlink(path);
}

/* Whether waiting is in vain: PostgreSQL's stop waits for its archiver, and that for us. */
static int is_alone(void)
{
	char path[PATH_MAX];
	return !alone_path(path) && !access(path, F_OK);
}

/* Connects while the runtime is (re)starting: an absent or refusing socket is tried again until `until`. */
static int dial(int64_t until)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (snprintf(to.sun_path, sizeof to.sun_path, "%s/ipc/wal.sock", strcmp(base, "/") ? base : "") >=
	    (int)sizeof to.sun_path)
		return errno = ENAMETOOLONG, -1;
	for (;;) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return -1;
		if (!connect(fd, (struct sockaddr *)&to, sizeof to))
			return fd;
		int saved = errno;
		close(fd);
		errno = saved;
		if ((saved != ENOENT && saved != ECONNREFUSED && saved != EAGAIN && saved != EINTR) || now_ms() >= until ||
		    is_alone())
			return -1;
		usleep(50000);
	}
}

/* One question, one answer; 0 when the connection broke before the answer was complete. */
static int ask(int fd, const struct buf *question, struct frame *answer)
{
	struct buf in = {0};
	char block[4096];
	int got = 0;
	for (size_t at = 0; at < question->len;) {
		ssize_t n = send(fd, question->data + at, question->len - at, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return 0;
		at += n > 0 ? (size_t)n : 0;
	}
	while (!got) {
		ssize_t n = read(fd, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || buf_add(&in, block, (size_t)n))
			break;
		got = frame_take(&in, answer);
	}
	buf_free(&in);
	return got == 1;
}

int wal_client(int argc, char **argv)
{
	const char *fields[4] = {argv[1]};
	int count = 1, wanted = strcmp(argv[1], "wal-restore") ? 2 : 3;
	char cwd[PATH_MAX], text[PATH_MAX + 128];
	signal(SIGPIPE, SIG_IGN);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			continue;
		if (!strncmp(argv[i], "--", 2)) { /* every flag of these commands has a value */
			i += !strchr(argv[i], '=');
			continue;
		}
		if (count < wanted)
			fields[count] = argv[i];
		count++;
	}
	const char *destination = flag_value(argc, argv, "log-destination", NULL);
	if (count != wanted) {
		report(destination, argv[1], "error", wanted == 2 ? "usage: wal-archive NAME" : "usage: wal-restore NAME DESTINATION");
		return 1;
	}
	if (!getcwd(cwd, sizeof cwd)) {
		snprintf(text, sizeof text, "cannot tell the working folder: %s", strerror(errno));
		report(destination, argv[1], "error", text);
		return 1;
	}
	fields[count++] = cwd;
	struct buf question = {0};
	if (frame_put(&question, count, fields)) {
		report(destination, argv[1], "error", "request too long or no memory");
		return 1;
	}
	/* Both requests may be repeated, so a runtime that goes away in the middle costs a second try, not a failure. */
	int64_t until = now_ms() + PATIENCE_MS;
	struct frame answer;
	for (int tries = 1;; tries++) {
		int fd = dial(until);
		if (fd < 0) {
			snprintf(text, sizeof text, "cannot reach the instance manager at %s/ipc/wal.sock: %s", base,
				 strerror(errno));
			report(destination, argv[1], "error", text);
			return 1;
		}
		int got = ask(fd, &question, &answer);
		close(fd);
		if (got)
			break;
		if (tries == 3) {
			report(destination, argv[1], "error", "the instance manager closed the connection without an answer");
			return 1;
		}
		until = now_ms() + PATIENCE_MS;
		usleep(100000);
	}
	char *end;
	long code = strtol(answer.field[0], &end, 10);
	if (!*answer.field[0] || *end || code < 0 || code > 255) {
		report(destination, argv[1], "error", "the instance manager gave an answer that is not an exit code");
		return 1;
	}
	if (answer.count > 1 && *answer.field[1])
		report(destination, argv[1], answer.count > 2 ? answer.field[2] : code ? "error" : "info", answer.field[1]);
	return (int)code;
}
