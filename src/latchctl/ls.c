/* `latchctl ls`. */
#include "latchctl/ask.h"
#include "latchctl/commands.h"
#include "latchctl/names.h"
#include "latchctl/show.h"

#include <stdio.h>
#include <unistd.h>

/* Prints a name raw into a pipe, for programs; never raw to a terminal. */
static bool print_name(void *ctx, struct span name)
{
    uint64_t *left = ctx;
    struct buf line = { 0 };

    if (isatty(STDOUT_FILENO) == 0) {
        buf_add_span(&line, name);
    } else {
        show_bytes(&line, name, 0);
    }
    buf_add_str(&line, "\n");
    (void)fwrite(buf_ptr(&line), 1, buf_len(&line), stdout);
    buf_reset(&line);
    return --*left > 0;
}

int ctl_ls(struct options *o)
{
    struct link l = { 0 };
    uint64_t left = o->count == 0 ? UINT64_MAX : o->count;
    int code = CTL_EXIT_FAILED;

    if (ask_open(&l, o) && names_each(&l, o->all, o->match, print_name, &left) &&
        fflush(stdout) == 0) {
        code = 0;
    }
    link_close(&l);
    return code;
}
