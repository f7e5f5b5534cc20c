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

static struct {
	char path[PATH_MAX];
	pid_t pid;
	uint64_t seen;
	int64_t silent;
} probes[PROBE_MAX];
static int count;
static int64_t limit, looked_at;
static _Atomic uint64_t *done; /* shared with the processes: writes that came back, one number per volume */

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

void probe_stop(void)
{
	for (int i = 0; i < count; i++)
		if (probes[i].pid > 0)
			kill(probes[i].pid, SIGKILL);
	count = 0;
	limit = 0;
}

/* Fields: verb, limit in milliseconds (0 = none), folders. */
void probe_request(const struct frame *f)
{
	char *end;
	const char *text = f->count > 1 ? f->field[1] : "";
	long long ms = strtoll(text, &end, 10);
	probe_stop();
	if (!*text || *end || ms < 0 || ms > INT32_MAX) {
		log_msg("error", "probe request that is no number of milliseconds: %s", text);
		return;
	}
	if (!ms)
		return;
	if (!done) {
		done = mmap(NULL, PROBE_MAX * sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (done == MAP_FAILED) {
			done = NULL;
			log_msg("error", "no memory to probe the volumes: %s", strerror(errno));
			return;
		}
	}
	limit = ms;
	looked_at = now_ms();
	for (int i = 2; i < f->count && count < PROBE_MAX; i++) {
		if (path_join(probes[count].path, f->field[i], PROBE_FILE))
			continue;
		probes[count].pid = 0;
		probes[count].silent = 0;
		probes[count].seen = atomic_load(&done[count]);
		count++;
	}
}

void probe_reaped(pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (probes[i].pid == pid)
			probes[i].pid = 0;
}

/* Starts what is missing and kills the pod when a volume has been silent for too long; tells when to look again. */
int64_t probe_tick(int64_t now)
{
	if (!limit || !count)
		return 0;
	int64_t passed = now - looked_at < 2 * PROBE_LOOK ? now - looked_at : 2 * PROBE_LOOK;
	looked_at = now;
	for (int i = 0; i < count; i++) {
		uint64_t number = atomic_load(&done[i]);
		if (!probes[i].pid) {
			pid_t pid = fork();
			if (pid == 0)
				probe_run(i);
			probes[i].pid = pid > 0 ? pid : 0;
		}
		probes[i].silent = number == probes[i].seen ? probes[i].silent + passed : 0;
		probes[i].seen = number;
		if (probes[i].silent < limit)
			continue;
		char volume[PATH_MAX];
		snprintf(volume, sizeof volume, "%s", probes[i].path);
		folder_of(volume);
		kill_all("disk");
		log_msg("error", "no write to %s came back for %lld ms: killed every process of the pod", volume,
			(long long)limit);
		probe_stop();
		return 0;
	}
	return now + PROBE_LOOK;
}
