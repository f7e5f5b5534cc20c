/* One JSON object a line on stderr, with the keys of the instance manager. */
#define _GNU_SOURCE
#include "launcher.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *log_level_key = "level", *log_ts_key = "ts";
int log_quiet;

static size_t escape(char *out, size_t room, const char *in)
{
	size_t n = 0;
	for (; *in && n + 7 < room; in++) {
		unsigned char c = (unsigned char)*in;
		if (c == '"' || c == '\\')
			out[n++] = '\\', out[n++] = (char)c;
		else if (c == '\n')
			out[n++] = '\\', out[n++] = 'n';
		else if (c < 0x20)
			n += (size_t)snprintf(out + n, 7, "\\u%04x", c);
		else
			out[n++] = (char)c;
	}
	/* A text cut inside a UTF-8 character would not be JSON. */
	if (*in)
		while (n && ((unsigned char)out[n - 1] & 0xc0) == 0x80)
			n--;
	if (*in && n && (unsigned char)out[n - 1] >= 0xc0)
		n--;
	out[n] = 0;
	return n;
}

int log_format(char *out, size_t size, const char *level, const char *logger, const char *msg)
{
	char text[3072], pod[300] = "", stamp[40];
	struct timespec t;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
	escape(text, sizeof text, msg);
	const char *name = getenv("POD_NAME");
	if (name && *name)
		escape(pod, sizeof pod, name);
	int n = snprintf(out, size, "{\"%s\":\"%s\",\"%s\":\"%s.%09ldZ\",\"logger\":\"%s\",\"msg\":\"%s\"%s%s%s}\n",
			 log_level_key, level, log_ts_key, stamp, t.tv_nsec, logger, text,
			 pod[0] ? ",\"logging_pod\":\"" : "", pod, pod[0] ? "\"" : "");
	return n < (int)size ? n : (int)size - 1;
}

void log_msg(const char *level, const char *fmt, ...)
{
	char msg[2048], line[4096];
	if (log_quiet && !strcmp(level, "info"))
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	int n = log_format(line, sizeof line, level, "launcher", msg);
	/* A full pipe (the node's log driver hangs) must never hold up PID 1: its deadline timer is a safety device. */
	struct pollfd p = {.fd = 2, .events = POLLOUT};
	if (poll(&p, 1, 50) == 1 && (p.revents & POLLOUT))
		if (write(2, line, (size_t)n) < 0)
			return; /* nowhere left to tell it */
}
