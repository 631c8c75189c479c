#include "lockscript/script_error.h"

#include <stdarg.h>
#include <stdio.h>

bool script_error_set(struct lock_script_error *e, unsigned line, const char *fmt, ...)
{
    va_list ap;

    if (e->why[0] != '\0') {
        return false;
    }
    e->line = line;
    va_start(ap, fmt);
    (void)vsnprintf(e->why, sizeof(e->why), fmt, ap);
    va_end(ap);
    for (char *c = e->why; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return false;
}
