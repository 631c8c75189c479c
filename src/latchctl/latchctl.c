/* latchctl: the command line of latchd; see latchctl(1). */
#include "latchctl/commands.h"
#include "latchctl/run.h"
#include "latchctl/top.h"
#include "latchctl/why.h"

#include <fcntl.h>
#include <unistd.h>

static int run_subcommand(struct options *o)
{
    switch (o->command) {
    case CTL_RUN:
    case CTL_LOCK:
        return ctl_run(o);
    case CTL_UNLOCK:
        return ctl_unlock(o);
    case CTL_TOP:
        return ctl_top(o);
    case CTL_WHY:
        return ctl_why(o);
    case CTL_LATCH:
        return ctl_latch(o);
    case CTL_LEADER:
        return ctl_leader(o);
    case CTL_LS:
        return ctl_ls(o);
    case CTL_FORCE:
        return ctl_force(o);
    }
    return CTL_EXIT_FAILED;
}

/* Opens files 0 to 2 if the parent closed them, so that no file of ours gets such a
 * number. COMMAND still finds them closed. */
static void occupy_standard_files(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        (void)close(fd);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    int code = 0;

    occupy_standard_files();
    switch (options_parse(argc, argv, &options)) {
    case OPTIONS_GO:
        code = run_subcommand(&options);
        break;
    case OPTIONS_SAID:
        break;
    case OPTIONS_WRONG:
        code = CTL_EXIT_FAILED;
        break;
    }
    options_fini(&options);
    return code;
}
