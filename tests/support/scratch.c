#include "support/scratch.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char VARIABLE[] = "LATCHD_TEST_SCRATCH";

void scratch_open(void)
{
    char path[] = "/tmp/latchd-test-XXXXXX";

    if (mkdtemp(path) == NULL || setenv(VARIABLE, path, 1) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static void print_log(const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "re");

    if (f == NULL) {
        return;
    }
    printf("# --- %s\n", path);
    while (fgets(line, sizeof line, f) != NULL) {
        printf("# %s", line);
    }
    (void)fclose(f);
}

static int on_print(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    size_t len = strlen(path);

    if (type == FTW_F && len > 4 && strcmp(path + len - 4, ".log") == 0) {
        print_log(path);
    }
    return 0;
}

static int on_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)remove(path);
    return 0;
}

void scratch_close(int failed)
{
    const char *dir = getenv(VARIABLE);

    if (failed != 0) {
        (void)nftw(dir, on_print, 8, FTW_PHYS);
    }
    (void)nftw(dir, on_remove, 8, FTW_PHYS | FTW_DEPTH);
}

void scratch_path(const char *kind, const char *suffix, char *ret, size_t room)
{
    static unsigned count;
    int len = snprintf(ret, room, "%s/%s-%d-%u%s", getenv(VARIABLE), kind,
                       (int)getpid(), ++count, suffix);

    ck_assert_int_lt(len, (int)room);
}
