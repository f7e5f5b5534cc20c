/* The few flags that concern the launcher itself; the runtime parses the rest. */
#define _GNU_SOURCE
#include "launcher.h"

#include <string.h>

/* Value of `--name value` or `--name=value`; the last one wins, as in the runtime. */
const char *flag_value(int argc, char **argv, const char *name, const char *fallback)
{
	size_t n = strlen(name);
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (strncmp(argv[i], "--", 2) || strncmp(argv[i] + 2, name, n))
			continue;
		if (argv[i][2 + n] == '=')
			fallback = argv[i] + 3 + n;
		else if (!argv[i][2 + n] && i + 1 < argc)
			fallback = argv[++i];
	}
	return fallback;
}

void flags_for_log(int argc, char **argv)
{
	log_level_key = flag_value(argc, argv, "log-field-level", "level");
	log_ts_key = flag_value(argc, argv, "log-field-timestamp", "ts");
	const char *level = flag_value(argc, argv, "log-level", "info");
	log_quiet = !strcmp(level, "error") || !strcmp(level, "warning");
}
