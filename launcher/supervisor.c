/* The event loop of PID 1. Nothing in it may wait for a disk, a pipe or another process. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct state s;

void deadline_arm(int64_t at_ns)
{
	struct itimerspec t = {.it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}};
	s.deadline_ns = at_ns;
	if (timerfd_settime(s.deadline_fd, TFD_TIMER_ABSTIME, &t, NULL))
		log_msg("error", "cannot set the deadline: %s", strerror(errno));
}

/* What runs from here on was started later: everything else has its end pending, also what hangs in the kernel. */
void kill_all(const char *why)
{
	s.killed = why;
	kill(-1, SIGKILL);
}

static void deadline_passed(void)
{
	uint64_t times;
	if (read(s.deadline_fd, &times, sizeof times) != sizeof times)
		return; /* disarmed or moved in the meantime */
	kill_all("deadline");
	s.deadline_ns = 0;
	log_msg("error", "the deadline has passed: killed every process of the pod");
}

void end_begin(int code)
{
	if (s.ending)
		return;
	s.ending = 1;
	s.code = code;
	s.kill_at = now_ms() + END_TERM;
	probe_stop(); /* they block SIGTERM as we do */
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
	alone_mark(1);
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

static void relay(int sig)
{
	if (sig == SIGTERM || sig == SIGINT)
		s.term = sig;
	/* Before its hello a runtime has no handlers and would just die of it; it is told in the answer. */
	if (s.runtime && !s.ending && (s.with->once || s.hello))
		kill(s.runtime, sig);
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
		/* While threads of the runtime still end it looks dead, and its children are not ours yet. */
		if (now >= s.kill_at || (!s.runtime && !children_left(s.spiller)))
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
	next = sooner(next, probe_tick(now));
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
		s.note = h->note;
		if (h->deadline_ns)
			deadline_arm(h->deadline_ns);
		log_msg("info", "took over from the launcher before, postmaster %d", s.postmaster);
	}
	reap();
	loop();
	return 1;
}
