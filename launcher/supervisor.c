/* The event loop of PID 1. Nothing in it may wait for a disk, a pipe or another process. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BACKOFF_MIN = 100, BACKOFF_MAX = 5000, SETTLED = 60000, QUICK = 10000, QUICK_DEATHS = 5 };
enum { LEFTOVER_TERM = 5000, LEFTOVER_GIVE_UP = 10000, UNPLUGGED = 5000, END_TERM = 5000 };
enum { OWN_STOP_AFTER = 10000, OWN_STOP_FAST = 60000, OWN_STOP_IMMEDIATE = 5000, SPILL_RETRY = 1000 };
#define BACKLOG_MAX (4u << 20)

static struct {
	const struct supervise *with;

	pid_t runtime;
	int channel, hello, unread;
	struct buf in, out;
	int64_t started_at, restart_at, backoff, unplugged_at;
	int quick_deaths;
	pid_t leftover; /* session of the runtime before, while tools it started still live */
	int64_t leftover_kill_at, leftover_give_up_at;

	pid_t postmaster;
	int postmaster_ever;
	struct spawn spawn;
	struct {
		pid_t pid;
		int code, signal, sent;
	} report;

	int term; /* the last SIGTERM or SIGINT */
	int own_stop;
	int64_t own_stop_at, quit_at;

	pid_t spiller;
	int runtime_reads, drained_owed;
	int64_t spill_at;

	int deadline_fd;
	int64_t deadline_ns;

	int ending, code;
	int64_t kill_at;
} s;

static void end_begin(int code);

/* ---- control channel ---- */

static void channel_close(void)
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

static void channel_flush(void)
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

static void answer(int count, const char *const *fields)
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

static void report_send(void)
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

static void answer_hello(void)
{
	char pid[12], dropped[24], spill[PATH_MAX];
	snprintf(pid, sizeof pid, "%d", s.postmaster);
	snprintf(dropped, sizeof dropped, "%" PRIu64, spill_dropped());
	spill_path(spill);
	s.hello = 1;
	s.own_stop_at = 0;
	const char *term = s.term == SIGTERM ? "TERM" : s.term == SIGINT ? "INT" : "";
	answer(6, (const char *const[]){"hello", "1", pid, term, spill, dropped});
	report_send();
}

static void answer_drained(void)
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

/* ---- postmaster ---- */

static void spawn_outcome(void)
{
	char text[512];
	if (s.spawn.fd < 0)
		return;
	ssize_t n = read(s.spawn.fd, text, sizeof text - 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(s.spawn.fd);
	s.spawn.fd = -1;
	if (n > 0) {
		text[n] = 0;
		s.postmaster = 0;
		answer(3, (const char *const[]){"error", s.spawn.id, text});
		return;
	}
	char pid[12];
	snprintf(pid, sizeof pid, "%d", s.postmaster);
	s.postmaster_ever = 1;
	log_msg("info", "started the postmaster, process %d", s.postmaster);
	answer(3, (const char *const[]){"spawned", s.spawn.id, pid});
}

static void spawn(const struct frame *f)
{
	char error[256];
	if (s.postmaster || s.ending || s.own_stop) {
		if (s.postmaster)
			snprintf(error, sizeof error, "a postmaster runs already, process %d", s.postmaster);
		else
			snprintf(error, sizeof error, "the pod is being shut down");
	} else if (!postmaster_fork(f, &s.spawn, error, sizeof error)) {
		s.postmaster = s.spawn.pid;
		s.report.pid = s.report.sent = 0;
		return;
	}
	answer(3, (const char *const[]){"error", f->count > 1 ? f->field[1] : "", error});
}

static void postmaster_ended(int status)
{
	pid_t pid = s.postmaster;
	spawn_outcome();
	if (!s.postmaster)
		return; /* it never became one, and the runtime has been told */
	s.postmaster = 0;
	s.report.pid = pid;
	s.report.sent = 0;
	s.report.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	s.report.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	log_msg("info", "the postmaster, process %d, ended (exit code %d, signal %d)", pid, s.report.code,
		s.report.signal);
	report_send();
	if (s.own_stop)
		end_begin(s.report.code == 0 ? 0 : 1);
}

/* ---- deadline ---- */

static void deadline_arm(int64_t at_ns)
{
	struct itimerspec t = {.it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}};
	s.deadline_ns = at_ns;
	if (timerfd_settime(s.deadline_fd, TFD_TIMER_ABSTIME, &t, NULL))
		log_msg("error", "cannot set the deadline: %s", strerror(errno));
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

static void deadline_passed(void)
{
	uint64_t times;
	if (read(s.deadline_fd, &times, sizeof times) != sizeof times)
		return; /* disarmed or moved in the meantime */
	kill(-1, SIGKILL);
	s.deadline_ns = 0;
	log_msg("error", "the deadline has passed: killed every process of the pod");
}

/* ---- runtime ---- */

static void upgrade(const char *staged)
{
	char error[PATH_MAX + 200], undo[PATH_MAX + 200];
	struct handover h = {.lock_fd = s.with->lock_fd, .runtime = s.runtime, .postmaster = s.postmaster,
			     .postmaster_ever = s.postmaster_ever, .term = s.term, .deadline_ns = s.deadline_ns,
			     .exit_pid = s.report.sent ? 0 : s.report.pid, .exit_code = s.report.code,
			     .exit_signal = s.report.signal, .dropped = spill_dropped()};
	if (s.spiller || s.spawn.fd >= 0 || s.ending || s.own_stop)
		snprintf(error, sizeof error, "not now: send drain-stop and wait for its answer and for that of spawn");
	else if (!upgrade_swap(staged, error, sizeof error)) {
		log_msg("info", "handing over to the launcher from %s", staged);
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
static void channel_read(void)
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

static void runtime_start(void)
{
	int ends[2] = {-1, -1};
	const struct supervise *w = s.with;
	s.started_at = now_ms();
	s.unplugged_at = 0;
	if (!w->once && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		log_msg("error", "no control channel: %s", strerror(errno));
		s.restart_at = s.started_at + BACKOFF_MAX;
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		/* A session of its own marks everything the runtime starts, so that it can be ended before the next one. */
		setsid();
		if (!w->once) {
			if (ends[1] == CHANNEL_FD)
				fcntl(ends[1], F_SETFD, 0);
			else
				dup2(ends[1], CHANNEL_FD);
			setenv("CNPG_LAUNCHER_FD", "3", 1);
		}
		runtime_exec(w->argc, w->argv, w->bundle);
		_exit(127);
	}
	int saved = errno;
	if (ends[1] >= 0)
		close(ends[1]);
	if (pid < 0) {
		if (ends[0] >= 0)
			close(ends[0]);
		log_msg("error", "no process for the runtime: %s", strerror(saved));
		s.restart_at = s.started_at + BACKOFF_MAX;
		return;
	}
	s.runtime = pid;
	s.channel = ends[0];
}

static void runtime_ended(int status)
{
	int64_t now = now_ms(), life = now - s.started_at;
	pid_t pid = s.runtime;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	channel_read();
	s.runtime = 0;
	channel_close();
	s.unplugged_at = 0;
	s.runtime_reads = 0;
	if (s.with->once)
		end_begin(code);
	if (s.ending)
		return;
	/* Two runtimes' tools (pg_rewind, pg_basebackup, ...) must never work on one data folder. */
	s.leftover = pid;
	session_signal(pid, SIGTERM);
	s.leftover_kill_at = now + LEFTOVER_TERM;
	s.leftover_give_up_at = now + LEFTOVER_GIVE_UP;
	s.quick_deaths = life < QUICK ? s.quick_deaths + 1 : 0;
	if (life >= SETTLED || !s.backoff)
		s.backoff = BACKOFF_MIN;
	else
		s.backoff = s.backoff * 2 < BACKOFF_MAX ? s.backoff * 2 : BACKOFF_MAX;
	s.restart_at = now + s.backoff;
	log_msg("error", "the runtime ended after %" PRId64 " ms (exit code %d), starting it again in %" PRId64 " ms", life,
		code, s.backoff);
	if (!s.postmaster_ever && s.quick_deaths >= QUICK_DEATHS) {
		log_msg("error", "the runtime cannot be kept up and there is no PostgreSQL to keep: giving up");
		end_begin(1);
	}
}

/* ---- ending ---- */

static void end_begin(int code)
{
	if (s.ending)
		return;
	s.ending = 1;
	s.code = code;
	s.kill_at = now_ms() + END_TERM;
	kill(-1, SIGTERM);
}

static _Noreturn void end_now(void)
{
	kill(-1, SIGKILL);
	for (int i = 0; i < 100; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			break;
		if (pid == 0)
			usleep(5000);
	}
	exit(s.code);
}

static void own_stop_begin(int64_t now)
{
	s.own_stop = 1;
	s.own_stop_at = 0;
	log_msg("error", "no runtime to shut PostgreSQL down, doing it from here");
	if (s.runtime)
		session_signal(s.runtime, SIGKILL);
	if (!s.postmaster) {
		end_begin(0);
		return;
	}
	kill(s.postmaster, SIGINT);
	s.quit_at = now + OWN_STOP_FAST;
}

static void own_stop_harder(int64_t now)
{
	if (s.own_stop == 2) {
		end_begin(1);
		return;
	}
	s.own_stop = 2;
	log_msg("error", "PostgreSQL did not stop within %d s, asking for an immediate stop", OWN_STOP_FAST / 1000);
	kill(s.postmaster, SIGQUIT);
	s.quit_at = now + OWN_STOP_IMMEDIATE;
}

/* ---- signals and timers ---- */

static void relay(int sig)
{
	if (sig == SIGTERM || sig == SIGINT)
		s.term = sig;
	/* Before its hello a runtime has no handlers and would just die of it; it is told in the answer. */
	if (s.runtime && !s.ending && (s.with->once || s.hello))
		kill(s.runtime, sig);
}

static void reap(void)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s.runtime)
			runtime_ended(status);
		else if (pid == s.postmaster)
			postmaster_ended(status);
		else if (pid == s.spiller) {
			s.spiller = 0;
			if (s.drained_owed)
				answer_drained();
		} /* anything else is an orphan that was left to us */
	}
}

static void signals_read(void)
{
	struct signalfd_siginfo si;
	while (read(s.with->sigfd, &si, sizeof si) == sizeof si)
		if (si.ssi_signo != SIGCHLD)
			relay((int)si.ssi_signo);
	reap();
}

static int64_t sooner(int64_t a, int64_t b)
{
	return b && (!a || b < a) ? b : a;
}

static int64_t leftover_tick(int64_t now)
{
	if (!s.leftover)
		return 0;
	int left = session_signal(s.leftover, now >= s.leftover_kill_at ? SIGKILL : 0);
	if (left && now >= s.leftover_give_up_at)
		log_msg("error", "%d processes of the runtime before cannot be killed, going on beside them", left);
	if (!left || now >= s.leftover_give_up_at)
		s.leftover = 0;
	return s.leftover ? now + 50 : 0;
}

/* Does what is due and tells when to look again, 0 = no timer runs. */
static int64_t tick(void)
{
	int64_t now = now_ms();
	if (s.ending) {
		if (now >= s.kill_at || !children_left(s.spiller))
			end_now();
		return now + 50;
	}
	int64_t next = leftover_tick(now);
	if (s.unplugged_at && now >= s.unplugged_at && s.runtime) {
		s.unplugged_at = 0;
		log_msg("error", "killing the runtime, which has lost its control channel");
		session_signal(s.runtime, SIGKILL);
	}
	if (s.term && !s.hello && !s.own_stop && !s.with->once && !s.own_stop_at)
		s.own_stop_at = now + OWN_STOP_AFTER;
	if (s.own_stop_at && now >= s.own_stop_at)
		own_stop_begin(now);
	if (s.quit_at && now >= s.quit_at)
		own_stop_harder(now);
	if (!s.runtime && !s.own_stop && !s.ending) {
		if (!s.leftover && now >= s.restart_at)
			runtime_start();
		next = sooner(next, s.runtime || s.leftover ? 0 : s.restart_at);
	}
	if (!s.with->once && !s.runtime_reads && !s.spiller) {
		if (now >= s.spill_at) {
			s.spill_at = now + SPILL_RETRY;
			s.spiller = spill_start();
			if (s.spiller < 0) {
				s.spiller = 0;
				log_msg("error", "no process to drain the logs: %s", strerror(errno));
			}
		}
		next = sooner(next, s.spiller ? 0 : s.spill_at);
	}
	next = sooner(next, s.unplugged_at);
	next = sooner(next, s.own_stop_at);
	next = sooner(next, s.quit_at);
	return s.ending ? now + 1 : next;
}

static void loop(void)
{
	for (;;) {
		int64_t next = tick(), now = now_ms();
		struct pollfd p[4] = {{.fd = s.deadline_fd, .events = POLLIN},
				      {.fd = s.with->sigfd, .events = POLLIN},
				      {.fd = s.channel, .events = (short)(s.out.len ? POLLIN | POLLOUT : POLLIN)},
				      {.fd = s.spawn.fd, .events = POLLIN}};
		int wait = next ? (next > now ? (int)(next - now) : 0) : -1;
		if (poll(p, 4, wait) < 0 && errno != EINTR && errno != ENOMEM) {
			log_msg("error", "cannot wait for events: %s", strerror(errno));
			exit(1);
		}
		if (p[0].revents)
			deadline_passed();
		if (p[2].revents & (POLLIN | POLLHUP | POLLERR))
			channel_read();
		if (p[1].revents)
			signals_read();
		if (p[2].revents & POLLOUT)
			channel_flush();
		if (p[3].revents)
			spawn_outcome();
	}
}

int supervise(const struct supervise *with)
{
	s.with = with;
	s.channel = s.spawn.fd = -1;
	s.deadline_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s.deadline_fd < 0) {
		log_msg("error", "no timer for the deadline: %s", strerror(errno));
		return 1;
	}
	if (!with->once && fifo_open()) {
		log_msg("error", "cannot make the folders and FIFOs under %s: %s", base, strerror(errno));
		return 1;
	}
	if (with->successor) {
		const struct handover *h = &with->from;
		s.postmaster = h->postmaster;
		s.postmaster_ever = h->postmaster_ever;
		s.term = h->term;
		s.report.pid = h->exit_pid;
		s.report.code = h->exit_code;
		s.report.signal = h->exit_signal;
		s.leftover = h->runtime;
		s.leftover_give_up_at = now_ms() + LEFTOVER_GIVE_UP;
		spill_dropped_set(h->dropped);
		if (h->deadline_ns)
			deadline_arm(h->deadline_ns);
		log_msg("info", "took over from the launcher before, postmaster %d", s.postmaster);
	}
	reap();
	loop();
	return 1;
}
