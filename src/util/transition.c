#include "util/transition.h"

#include <stdio.h>
#include <stdlib.h>

void transition_refuse(const struct transitions *t, unsigned from, unsigned to)
{
    (void)fprintf(stderr,
                  "latchd: a defect, it ends: a %s went from %s to %s; holds stay in "
                  "Redis for their lease\n",
                  t->subject, t->states[from].name, t->states[to].name);
    abort();
}
