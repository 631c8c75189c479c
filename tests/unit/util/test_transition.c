#include "support/runner.h"

#include "util/transition.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum lamp { OFF, ON, BROKEN };

static const struct transitions LAMP = {
    .subject = "lamp",
    .states = {
        [OFF] = { "OFF", INTO(ON) },
        [ON] = { "ON", INTO(OFF) | INTO(BROKEN) },
        [BROKEN] = { "BROKEN", 0 },
    },
};

START_TEST(only_what_the_table_has_is_allowed)
{
    ck_assert(transition_is_allowed(&LAMP, OFF, ON));
    ck_assert(transition_is_allowed(&LAMP, ON, BROKEN));
    ck_assert(!transition_is_allowed(&LAMP, OFF, OFF));
    ck_assert(!transition_is_allowed(&LAMP, OFF, BROKEN));
    ck_assert(!transition_is_allowed(&LAMP, BROKEN, OFF));
    transition_check(&LAMP, ON, OFF);
}

START_TEST(a_forbidden_transition_ends_the_process_and_names_both_states)
{
    char said[256] = "";
    size_t len = 0;
    ssize_t got;
    int fds[2], status;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        transition_check(&LAMP, BROKEN, ON);
        _exit(0);
    }
    (void)close(fds[1]);
    while ((got = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    (void)close(fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_ptr_nonnull(strstr(said, "a lamp went from BROKEN to ON"));
}
