#include "rivals.h"

#include "results.h"
#include "support/redis.h"
#include "support/stand.h"
#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX = 512, FIELDS = 9 };

/* The columns of rivals.py, behind workload and way. */
static const enum figure COLUMNS[FIELDS - 2] = { FIGURE_RATE, FIGURE_P50, FIGURE_P99,
                                                 FIGURE_P999, FIGURE_MAX, FIGURE_CLIENT,
                                                 FIGURE_REDIS };

static void take_row(FILE *file, char *line)
{
    char *fields[FIELDS] = { NULL }, *rest = line;
    struct figures f = { 0 };
    double ours;

    for (int i = 0; i < FIELDS; i++) {
        fields[i] = strsep(&rest, "\t");
        if (fields[i] == NULL) {
            bench_die("rivals.py: %s", line);
        }
    }
    for (int i = 2; i < FIELDS; i++) {
        f.of[COLUMNS[i - 2]] = atof(fields[i]);
    }
    ours = results_rate(fields[0], "latchd");
    figures_write(stdout, fields[0], fields[1], &f, ours);
    figures_write(file, fields[0], fields[1], &f, ours);
    results_row(xstrdup(fields[0]), xstrdup(fields[1]), &f); /* kept, as results are */
}

void rivals_run(FILE *file, double seconds)
{
    char command[LINE_MAX], line[LINE_MAX];
    FILE *said;

    (void)snprintf(command, sizeof command, "exec python3 %s bench-rivals %f %d",
                   RIVALS_PY, seconds, redis_port(stand.redis));
    said = popen(command, "re");
    if (said == NULL) {
        bench_die("no shell");
    }
    while (fgets(line, sizeof line, said) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#') {
            printf("%s\n", line);
            (void)fflush(stdout);
        } else {
            take_row(file, line);
        }
    }
    if (pclose(said) != 0) {
        printf("# rivals.py failed\n");
    }
}
