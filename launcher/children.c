/* The launcher's children: the postmaster, the runtime, and whatever orphan is left to PID 1. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void spawn_outcome(void)
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
	s.killed = NULL;
	log_msg("info", "started the postmaster, process %d", s.postmaster);
	answer(3, (const char *const[]){"spawned", s.spawn.id, pid});
}

void spawn(const struct frame *f)
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

void runtime_start(void)
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
	/* Runtimes that greet and die, one after the other, would put our own stop off for good. */
	if (s.term && !s.own_stop && ++s.term_deaths >= TERM_DEATHS && !s.own_stop_at)
		s.own_stop_at = now + OWN_STOP_AFTER;
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

void reap(void)
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
		} else
			probe_reaped(pid); /* anything else is an orphan that was left to us */
	}
}
