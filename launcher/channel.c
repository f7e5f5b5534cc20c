/* The control channel: frames to and from the runtime, and the requests that arrive there. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG_MAX (4u << 20)
#define NOTE_MAX (32u << 10)

void channel_close(void)
{
	if (s.channel < 0)
		return;
	/* A report that the runtime never read belongs to the next one. */
	if (s.report.sent && !s.out.len && !s.unread)
		s.report.pid = 0;
	s.report.sent = 0;
	close(s.channel);
	s.channel = -1;
	s.hello = s.unread = 0;
	s.drained_owed = 0;
	buf_free(&s.in);
	buf_free(&s.out);
	if (s.runtime)
		s.unplugged_at = now_ms() + UNPLUGGED;
}

void channel_flush(void)
{
	while (s.channel >= 0 && s.out.len) {
		ssize_t n = send(s.channel, s.out.data, s.out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN)
				channel_close();
			return;
		}
		buf_drop(&s.out, (size_t)n);
	}
}

void answer(int count, const char *const *fields)
{
	if (s.channel < 0)
		return;
	if (frame_put(&s.out, count, fields) || s.out.len > BACKLOG_MAX) {
		log_msg("error", "the runtime does not read its control channel, closing it");
		channel_close();
		return;
	}
	channel_flush();
}

void report_send(void)
{
	char pid[12], code[12], sig[12];
	if (!s.report.pid || s.report.sent || !s.hello)
		return;
	snprintf(pid, sizeof pid, "%d", s.report.pid);
	snprintf(code, sizeof code, "%d", s.report.code);
	snprintf(sig, sizeof sig, "%d", s.report.signal);
	s.report.sent = 1;
	answer(4, (const char *const[]){"postmaster-exited", pid, code, sig});
}

/* Milliseconds until the deadline, 0 = there is none. */
static int64_t deadline_left(void)
{
	int64_t left = s.deadline_ns / 1000000 - now_ms();
	return s.deadline_ns ? (left > 0 ? left : 1) : 0;
}

static void answer_hello(void)
{
	char pid[12], dropped[24], left[24], spill[PATH_MAX];
	snprintf(pid, sizeof pid, "%d", s.postmaster);
	snprintf(left, sizeof left, "%" PRId64, deadline_left());
	snprintf(dropped, sizeof dropped, "%" PRIu64, spill_dropped());
	spill_path(spill);
	s.hello = 1;
	if (s.term_deaths < TERM_DEATHS)
		s.own_stop_at = 0;
	const char *term = s.term == SIGTERM ? "TERM" : s.term == SIGINT ? "INT" : "";
	answer(9, (const char *const[]){"hello", "1", pid, term, spill, dropped, left, s.killed ? s.killed : "",
					s.note ? s.note : ""});
	report_send();
}

void answer_drained(void)
{
	char dropped[24], spill[PATH_MAX];
	snprintf(dropped, sizeof dropped, "%" PRIu64, spill_dropped());
	spill_path(spill);
	spill_dropped_set(0);
	s.drained_owed = 0;
	answer(3, (const char *const[]){"drained", spill, dropped});
}

static void drain_stop(void)
{
	s.runtime_reads = 1;
	if (!s.spiller) {
		answer_drained();
		return;
	}
	s.drained_owed = 1; /* told once the spill process has finished its record */
	spill_stop();
}

static void deadline_request(const char *text)
{
	char *end;
	struct timespec t;
	long long ms = strtoll(text, &end, 10);
	if (!*text || *end || ms < 0 || ms > INT32_MAX) {
		log_msg("error", "deadline request that is no number of milliseconds: %s", text);
		return;
	}
	clock_gettime(CLOCK_BOOTTIME, &t);
	deadline_arm(ms ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + ms * 1000000 : 0);
}

/* Fields: verb, id, text. Only a note that is kept is answered. */
static void keep_note(const struct frame *f)
{
	const char *text = f->count > 2 ? f->field[2] : "";
	char *copy = strlen(text) <= NOTE_MAX ? strdup(text) : NULL;
	/* An older note must not stand for this one. */
	free(s.note);
	s.note = copy;
	if (copy)
		answer(2, (const char *const[]){"kept", f->count > 1 ? f->field[1] : ""});
	else
		log_msg("error", "a note of %zu bytes for the next runtime cannot be kept", strlen(text));
}

static void upgrade(const char *staged)
{
	char error[PATH_MAX + 200], undo[PATH_MAX + 200];
	struct handover h = {.lock_fd = s.with->lock_fd, .runtime = s.runtime, .postmaster = s.postmaster,
			     .postmaster_ever = s.postmaster_ever, .term = s.term, .deadline_ns = s.deadline_ns,
			     .exit_pid = s.report.sent ? 0 : s.report.pid, .exit_code = s.report.code,
			     .exit_signal = s.report.signal, .dropped = spill_dropped(), .note = s.note};
	if (s.spiller || s.spawn.fd >= 0 || s.ending || s.own_stop)
		snprintf(error, sizeof error, "not now: send drain-stop and wait for its answer and for that of spawn");
	else if (!upgrade_swap(staged, error, sizeof error)) {
		log_msg("info", "handing over to the launcher from %s", staged);
		probe_stop();
		upgrade_exec(&h, s.with->argv, error, sizeof error);
		if (upgrade_swap(staged, undo, sizeof undo))
			log_msg("error", "cannot put the files back: %s", undo);
	}
	log_msg("error", "upgrade refused: %s", error);
	answer(3, (const char *const[]){"error", "upgrade", error});
}

static void handle(const struct frame *f)
{
	const char *verb = f->field[0], *first = f->count > 1 ? f->field[1] : "";
	if (!strcmp(verb, "hello"))
		answer_hello();
	else if (!strcmp(verb, "drain-stop"))
		drain_stop();
	else if (!strcmp(verb, "spawn"))
		spawn(f);
	else if (!strcmp(verb, "deadline"))
		deadline_request(first);
	else if (!strcmp(verb, "keep"))
		keep_note(f);
	else if (!strcmp(verb, "probe"))
		probe_request(f);
	else if (!strcmp(verb, "upgrade"))
		upgrade(first);
	else if (!strcmp(verb, "exit")) {
		char *end;
		long code = strtol(first, &end, 10);
		end_begin(*first && !*end && code >= 0 && code <= 255 ? (int)code : 1);
	} else
		log_msg("warning", "unknown request on the control channel: %s", verb);
}

/* Takes and handles all there is; several requests may wait, and an `exit` just before the runtime's end counts. */
void channel_read(void)
{
	static char block[65536];
	struct frame f;
	int taken = 0;
	while (s.channel >= 0) {
		ssize_t n = recv(s.channel, block, sizeof block, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		s.unread = n < 0 && errno == ECONNRESET; /* it was closed with something of ours unread */
		if (n <= 0 || buf_add(&s.in, block, (size_t)n))
			return channel_close();
		while (s.channel >= 0 && (taken = frame_take(&s.in, &f)) == 1) {
			handle(&f);
			frame_free(&f);
		}
		if (s.channel >= 0 && taken < 0) {
			log_msg("error", "frame too long on the control channel, closing it");
			channel_close();
		}
	}
}
