// Makes or removes the folder of one volume; run by local-path-provisioner's helper pod as
// `volume -p PATH -s SIZE -m MODE -a create|delete`.
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *position) {
  (void)info;
  (void)type;
  (void)position;
  return remove(path);
}

static int fail(const char *what, const char *path) {
  fprintf(stderr, "%s %s: %s\n", what, path, strerror(errno));
  return 1;
}

int main(int argc, char **argv) {
  const char *path = NULL;
  const char *action = NULL;
  for (int option; (option = getopt(argc, argv, "p:s:m:a:")) != -1;) {
    if (option == 'p') {
      path = optarg;
    } else if (option == 'a') {
      action = optarg;
    } else if (option == '?') {
      return 2;
    }
  }
  if (path == NULL || action == NULL) {
    fprintf(stderr, "usage: volume -p PATH -a create|delete\n");
    return 2;
  }
  if (strcmp(action, "create") == 0) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
      return fail("cannot make", path);
    }
    // The mode of mkdir is cut by the umask; any user may own what a pod writes here.
    return chmod(path, 0777) == 0 ? 0 : fail("cannot open up", path);
  }
  if (strcmp(action, "delete") == 0) {
    // Physical walk: a symbolic link in the volume is removed, not followed.
    if (nftw(path, remove_entry, 64, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) {
      return fail("cannot remove", path);
    }
    return 0;
  }
  fprintf(stderr, "unknown action %s\n", action);
  return 2;
}
