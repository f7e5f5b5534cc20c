/* One process per volume that writes and syncs a small file: only what comes back from the disk shows that it is alive. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PROBE_MAX 64
#define PROBE_FILE ".cnpg-ts.probe"
/* The launcher looks this often; of a longer gap no more than this counts, because then nobody ran, not only the disk. */
enum { PROBE_LOOK = 500, PROBE_PAUSE = 1000 };
/* And this often while somebody waits for the first answer of every volume. */
enum { PROBE_EAGER = 20 };

/* Places are kept when they are not wanted any more, and used again for the same path: a process that was killed and does not
 * end hangs in the kernel, which tells all that another one would find out. */
static struct {
	char path[PATH_MAX];
	int wanted;
	pid_t pid;
	int killed; /* the process has its end pending */
	int answered;
	uint64_t seen;
	int64_t silent;
} probes[PROBE_MAX];
static int count;
static int64_t limit, looked_at;
static _Atomic uint64_t *done; /* shared with the processes: writes that came back, one number per volume */
static char id[64];	       /* of the request that waits for its answer, empty = none */

static _Noreturn void probe_run(int index)
{
	prctl(PR_SET_NAME, "launcher-probe");
	close_range(3, ~0u, 0);
	for (;;) {
		int fd = open(probes[index].path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		/* A full disk answers; PostgreSQL has its own way to find that out. */
		int ok = fd < 0 ? errno == ENOSPC || errno == EDQUOT : 1;
		if (fd >= 0) {
			uint64_t number = atomic_load(&done[index]);
			if (pwrite(fd, &number, sizeof number, 0) < 0 || fdatasync(fd))
				ok = errno == ENOSPC || errno == EDQUOT;
			close(fd);
		}
		if (ok)
			atomic_fetch_add(&done[index], 1);
		usleep(PROBE_PAUSE * 1000);
	}
}

static void leave(int index)
{
	probes[index].wanted = 0;
	if (probes[index].pid <= 0)
		return;
	kill(probes[index].pid, SIGKILL);
	probes[index].killed = 1;
}

void probe_stop(void)
{
	for (int i = 0; i < count; i++)
		leave(i);
	limit = 0;
	id[0] = 0;
}

static int place_for(const char *path)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(probes[i].path, path))
			return i;
	for (int i = 0; i < count; i++)
		if (!probes[i].wanted && probes[i].pid <= 0)
			return i;
	return count < PROBE_MAX ? count++ : -1;
}

static void answer_probed(void)
{
	answer(2, (const char *const[]){"probed", id});
	id[0] = 0;
}

/* Fields: verb, id, limit in milliseconds (0 = none), folders. */
void probe_request(const struct frame *f)
{
	char *end, path[PATH_MAX];
	const char *text = f->count > 2 ? f->field[2] : "";
	long long ms = strtoll(text, &end, 10);
	for (int i = 0; i < count; i++)
		probes[i].wanted = 0;
	if (!*text || *end || ms < 0 || ms > INT32_MAX) {
		log_msg("error", "probe request that is no number of milliseconds: %s", text);
		ms = 0;
	}
	if (ms && !done) {
		done = mmap(NULL, PROBE_MAX * sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (done == MAP_FAILED) {
			done = NULL;
			log_msg("error", "no memory to probe the volumes: %s", strerror(errno));
		}
	}
	limit = done ? ms : 0;
	looked_at = now_ms();
	for (int i = 3; limit && i < f->count; i++) {
		int at = path_join(path, f->field[i], PROBE_FILE) ? -1 : place_for(path);
		if (at < 0)
			continue;
		snprintf(probes[at].path, sizeof probes[at].path, "%s", path);
		probes[at].wanted = 1;
		probes[at].answered = 0;
		probes[at].silent = 0;
		probes[at].seen = atomic_load(&done[at]);
	}
	for (int i = 0; i < count; i++)
		if (!probes[i].wanted)
			leave(i);
	snprintf(id, sizeof id, "%s", f->count > 1 ? f->field[1] : "");
	/* What nobody looks at is not held against the volumes. */
	if (!limit)
		answer_probed();
}

void probe_reaped(pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (probes[i].pid == pid)
			probes[i].pid = probes[i].killed = 0;
}

static void start(int index)
{
	pid_t pid = fork();
	if (pid == 0)
		probe_run(index);
	probes[index].pid = pid > 0 ? pid : 0;
}

static void give_up(int index)
{
	char volume[PATH_MAX];
	long long ms = limit;
	snprintf(volume, sizeof volume, "%s", probes[index].path);
	folder_of(volume);
	kill_all("disk");
	log_msg("error", "no write to %s came back for %lld ms: killed every process of the pod", volume, ms);
	probe_stop();
}

/* Starts what is missing and kills the pod when a volume has been silent for too long; tells when to look again. */
int64_t probe_tick(int64_t now)
{
	int waiting = 0;
	if (!limit)
		return 0;
	int64_t passed = now - looked_at < 2 * PROBE_LOOK ? now - looked_at : 2 * PROBE_LOOK;
	looked_at = now;
	for (int i = 0; i < count; i++) {
		if (!probes[i].wanted)
			continue;
		uint64_t number = atomic_load(&done[i]);
		if (!probes[i].pid)
			start(i);
		probes[i].silent = number == probes[i].seen ? probes[i].silent + passed : 0;
		probes[i].answered |= number != probes[i].seen;
		probes[i].seen = number;
		waiting |= !probes[i].answered;
		if (probes[i].silent < limit)
			continue;
		give_up(i);
		return 0;
	}
	if (id[0] && !waiting)
		answer_probed();
	return now + (id[0] ? PROBE_EAGER : PROBE_LOOK);
}
