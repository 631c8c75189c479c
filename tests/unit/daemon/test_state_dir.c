#include "daemon/embedded.h"
#include "daemon/files.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[96];
static char path[192];
static char boot[192];
static char err[512];

static void boot_is(const char *id)
{
    ck_assert_int_eq(file_replace(boot, span_str(id), 0600), 0);
}

static void setup(void)
{
    scratch_path("state", "", base, sizeof(base));
    ck_assert_int_eq(mkdir(base, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/a/b", base);
    (void)snprintf(boot, sizeof(boot), "%s/boot_id", base);
    boot_is("boot-1\n");
}

static void teardown(void)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", base);
    ck_assert_int_eq(system(command), 0);
}

static void open_dir(struct state_dir *dir)
{
    ck_assert_msg(state_dir_open(dir, path, boot, err, sizeof(err)), "%s", err);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(it_is_made_private)
{
    struct state_dir dir;
    struct stat st;

    open_dir(&dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0700);
    ck_assert_int_eq(dir.path[0], '/');
    state_dir_close(&dir);
    state_dir_close(&dir);
}

START_TEST(a_second_user_is_told_who_has_it)
{
    struct state_dir first;
    struct state_dir second;
    char want[64];

    open_dir(&first);
    ck_assert(!state_dir_open(&second, path, boot, err, sizeof(err)));
    (void)snprintf(want, sizeof(want), "in use by another latchd, process %d",
                   getpid());
    ck_assert_msg(strstr(err, want) != NULL, "%s", err);
    state_dir_close(&first);
    open_dir(&second);
    state_dir_close(&second);
}

START_TEST(a_path_too_long_for_a_socket_is_refused)
{
    struct state_dir dir;

    char longer[256];

    (void)snprintf(longer, sizeof(longer), "%s/%0100d", base, 1);
    ck_assert(!state_dir_open(&dir, longer, boot, err, sizeof(err)));
    ck_assert_msg(strstr(err, "too long for a unix socket") != NULL, "%s", err);
}

START_TEST(what_cannot_be_made_is_named)
{
    struct state_dir dir;

    ck_assert(!state_dir_open(&dir, "/proc/latchd", boot, err, sizeof(err)));
    ck_assert_msg(strstr(err, "/proc/latchd") != NULL, "%s", err);
}

START_TEST(the_lock_of_redis_lives_as_long_as_a_child_has_it)
{
    struct state_dir dir;
    int fds[2];
    int fd;
    pid_t pid;

    open_dir(&dir);
    fd = state_dir_lock_redis(&dir);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        char byte;

        (void)close(fds[1]);
        _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    ck_assert_int_gt(pid, 0);
    (void)close(fd);
    ck_assert_int_eq(state_dir_lock_redis(&dir), -1);
    ck_assert_int_eq(errno, EWOULDBLOCK);
    (void)close(fds[0]);
    (void)close(fds[1]);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    fd = state_dir_lock_redis(&dir);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    state_dir_close(&dir);
}

enum mark { MARK_NONE, MARK_EVERYSEC, MARK_ALWAYS, MARK_CLEAN };

static const struct {
    enum mark mark;
    const char *later_boot;
    bool lost;
} CASES[] = {
    { MARK_NONE, "boot-2\n", false },     { MARK_CLEAN, "boot-2\n", false },
    { MARK_EVERYSEC, "boot-1\n", false }, /* a crash: the kernel had it all */
    { MARK_EVERYSEC, "boot-2\n", true },  /* a power cut */
    { MARK_EVERYSEC, "", true },          /* nobody knows */
    { MARK_ALWAYS, "boot-2\n", false },
};

START_TEST(a_power_cut_is_told_from_a_crash, TEST_ROWS(CASES))
{
    struct state_dir dir;

    open_dir(&dir);
    ck_assert(!state_dir_lost_power(&dir));
    if (CASES[_i].mark == MARK_CLEAN) {
        ck_assert_int_eq(state_dir_mark_clean(&dir), 0);
    } else if (CASES[_i].mark != MARK_NONE) {
        ck_assert_int_eq(state_dir_mark_running(&dir, CASES[_i].mark == MARK_ALWAYS),
                         0);
    }
    state_dir_close(&dir);
    boot_is(CASES[_i].later_boot);
    open_dir(&dir);
    ck_assert_int_eq(state_dir_lost_power(&dir), CASES[_i].lost);
    state_dir_close(&dir);
}
