/* What the event loop knows, shared by the files it is split into: channel.c, children.c, supervisor.c. */
#ifndef STATE_H
#define STATE_H

#include "launcher.h"

/* Milliseconds, but for the count of deaths. */
enum { BACKOFF_MIN = 100, BACKOFF_MAX = 5000, SETTLED = 60000, QUICK = 10000, QUICK_DEATHS = 5 };
enum { LEFTOVER_TERM = 5000, LEFTOVER_GIVE_UP = 10000, UNPLUGGED = 5000, END_TERM = 5000 };
enum { OWN_STOP_AFTER = 10000, OWN_STOP_FAST = 60000, OWN_STOP_IMMEDIATE = 5000, SPILL_RETRY = 1000 };
enum { TERM_DEATHS = 2 };

struct state {
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

	int term;        /* the last SIGTERM or SIGINT */
	int term_deaths; /* runtimes that ended since */
	int own_stop;
	int64_t own_stop_at, quit_at;

	pid_t spiller;
	int runtime_reads, drained_owed;
	int64_t spill_at;

	int deadline_fd;
	int64_t deadline_ns;
	const char *killed; /* why every process was killed since the last start of a postmaster, NULL = they were not */

	char *note; /* what a runtime wants the next one to know, NULL = nothing */

	int ending, code;
	int64_t kill_at;
};
extern struct state s;

/* channel.c */
void answer(int count, const char *const *fields);
void answer_drained(void);
void report_send(void);
void channel_close(void);
void channel_flush(void);
void channel_read(void);

/* children.c */
void spawn(const struct frame *f);
void spawn_outcome(void);
void runtime_start(void);
void reap(void);

/* probe.c */
void probe_request(const struct frame *f);
void probe_stop(void);
void probe_reaped(pid_t pid);
int64_t probe_tick(int64_t now);

/* supervisor.c */
void deadline_arm(int64_t at_ns);
void kill_all(const char *why);
void end_begin(int code);

#endif
