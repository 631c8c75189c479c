/* Starting COMMAND as the shell would: in the same group, with the same signals. */
#include "latchctl/run/run.h"
#include "latchctl/show.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool set_environment(const struct run *r)
{
    const struct options *o = r->options;

    return setenv("LATCHD_TOKEN", r->token, 1) == 0 &&
           setenv("LATCHD_NAME", o->name, 1) == 0 &&
           setenv("LATCHD_ID", r->id, 1) == 0 &&
           (o->terms[OPTION_AT_OWNER] == NULL
                ? unsetenv("LATCHD_OWNER")
                : setenv("LATCHD_OWNER", o->terms[OPTION_AT_OWNER], 1)) == 0;
}

/* Runs in the child. Returns only on failure, with errno. */
static void exec_command(const struct run *r, pid_t keeper)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != keeper ||
        setpgid(0, r->front_group) != 0 || !set_environment(r) ||
        sigprocmask(SIG_SETMASK, &r->old_mask, NULL) != 0) {
        return;
    }
    (void)execvp(r->options->words[0], r->options->words);
}

pid_t command_start(const struct run *r, int *ret_code)
{
    int fds[2];
    int err = 0;
    pid_t keeper = getpid();
    pid_t pid;

    *ret_code = CTL_EXIT_FAILED;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        print_message("pipe: %s", strerror(errno));
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        exec_command(r, keeper);
        err = errno;
        if (write(fds[1], &err, sizeof(err)) != (ssize_t)sizeof(err)) {
            err = 0;
        }
        _exit(CTL_EXIT_FAILED);
    }
    (void)close(fds[1]);
    if (pid < 0) {
        print_message("fork: %s", strerror(errno));
    } else if (read(fds[0], &err, sizeof(err)) > 0) {
        print_message("%s: %s%s", r->options->words[0], strerror(err),
                      err == ENOENT ? "; COMMAND begins behind one NAME, --and NAME "
                                      "takes another lock with it"
                                    : "");
        *ret_code = err == ENOENT ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_EXECUTABLE;
        (void)waitpid(pid, NULL, 0);
        pid = -1;
    }
    (void)close(fds[0]);
    return pid;
}

void command_let_go(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        (void)close(null);
    }
}
