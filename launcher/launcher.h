/* The launcher: PID 1 of a PostgreSQL pod. docs/adr/0001-launcher-and-runtime.md is its contract. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FIFO_COUNT 5
#define FRAME_MAX (1u << 20)
#define SPILL_MAX (16u << 20)
#define CHANNEL_FD 3

/* log.c */
extern const char *log_level_key, *log_ts_key;
extern int log_quiet; /* 1 = leave out "info" */
int log_format(char *out, size_t size, const char *level, const char *logger, const char *msg);
void log_msg(const char *level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* frames.c */
struct buf {
	unsigned char *data;
	size_t len, cap;
};
struct frame {
	char *text;
	int count;
	char **field;
};
int buf_add(struct buf *b, const void *data, size_t len);
void buf_drop(struct buf *b, size_t len);
void buf_free(struct buf *b);
int frame_put(struct buf *b, int count, const char *const *fields);
int frame_take(struct buf *b, struct frame *f); /* 1 = one taken, 0 = incomplete, -1 = broken channel */
void frame_free(struct frame *f);

/* files.c */
extern char base[PATH_MAX]; /* folder of our own executable */
void base_find(void);
void folder_of(char *path);
int path_join(char *out, const char *folder, const char *name); /* out has PATH_MAX bytes */
int copy_file(const char *from, const char *to, mode_t mode);
int copy_tree(const char *from, const char *to);
int remove_tree(const char *path);
int exchange(const char *a, const char *b);
int bootstrap(const char *target);

/* flags.c */
const char *flag_value(int argc, char **argv, const char *name, const char *fallback);
void flags_for_log(int argc, char **argv);

/* lock.c */
int lock_volume(const char *pgdata, int sigfd); /* the descriptor, -1 without lock, or exits */

/* wal.c */
int wal_client(int argc, char **argv);
void alone_mark(int set); /* tells the clients that no runtime will come, so that they need not wait for one */

/* fifo.c */
extern const char *const fifo_names[FIFO_COUNT];
extern int fifo_fd[FIFO_COUNT];
int fifo_open(void);
pid_t spill_start(void); /* forks the process that drains the FIFOs into the spill file */
void spill_stop(void);   /* asks it to end at a record boundary */
uint64_t spill_dropped(void);
void spill_dropped_set(uint64_t lines);
void spill_path(char *out); /* empty text when there is nothing spilled */

/* runtime.c */
void runtime_exec(int argc, char **argv, const char *bundle); /* returns only on failure */
void environment_keep(void);
const char *environment_kept(int number, const char **value);
void signals_reset(void);

/* proc.c */
int64_t now_ms(void);
int session_signal(pid_t sid, int sig); /* number of live processes of that session; sig 0 = only count */
int children_left(pid_t except);

/* postmaster.c */
struct spawn {
	pid_t pid;
	int fd; /* end of file = started, bytes = the reason why not */
	char id[64];
};
int postmaster_fork(const struct frame *f, struct spawn *s, char *error, size_t size);

/* upgrade.c */
struct handover {
	int lock_fd;
	pid_t runtime, postmaster;
	int postmaster_ever, term;
	int exit_pid, exit_code, exit_signal; /* report nobody has read yet; pid 0 = none */
	int64_t deadline_ns;                  /* boot clock, 0 = none */
	uint64_t dropped;
	char *note; /* NULL = none */
};
int upgrade_swap(const char *staged, char *error, size_t size);
int upgrade_exec(const struct handover *h, char **argv, char *error, size_t size);
int handover_read(struct handover *h); /* 1 = we are the successor of an earlier launcher */

/* supervisor.c */
struct supervise {
	int argc;
	char **argv;
	const char *bundle;
	int once; /* run the runtime one time; no postmaster, no channel */
	int sigfd, lock_fd;
	int successor;
	struct handover from;
};
int supervise(const struct supervise *with);

#endif
