#include "support/runner.h"

#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* By file, then by line: constructors run in any order. */
static struct test_entry *entries;

__attribute__((weak)) void test_collect(int argc, char **argv);

static int compare_entries(const struct test_entry *a, const struct test_entry *b)
{
    int order = strcmp(a->file, b->file);

    return order != 0 ? order : a->line - b->line;
}

void runner_add(struct test_entry *entry)
{
    struct test_entry **at = &entries;

    while (*at != NULL && compare_entries(*at, entry) <= 0) {
        at = &(*at)->next;
    }
    entry->next = *at;
    *at = entry;
}

static TCase *begin_case(Suite *suite, const struct test_group *group)
{
    TCase *tc = tcase_create(program_invocation_short_name);

    suite_add_tcase(suite, tc);
    if (group == NULL) {
        return tc;
    }
    tcase_add_checked_fixture(tc, group->setup, group->teardown);
    tcase_add_unchecked_fixture(tc, group->setup_once, group->teardown_once);
    if (group->timeout_s != 0) {
        tcase_set_timeout(tc,
                          group->timeout_s == TEST_NO_TIMEOUT ? 0 : group->timeout_s);
    }
    return tc;
}

/* A share of the cases: each `of`-th one. Cases of one kind stand together, and so come
 * into different shares. */
struct share {
    int number, of;
};

static int count_cases(void)
{
    int count = 0;

    for (const struct test_entry *entry = entries; entry != NULL; entry = entry->next) {
        count += entry->test != NULL ? entry->times : 0;
    }
    return count;
}

static Suite *collect_tests(struct share share)
{
    Suite *suite = suite_create(program_invocation_short_name);
    const struct test_group *group = NULL;
    const char *file = "";
    TCase *tc = NULL;
    int number = 0;

    for (const struct test_entry *entry = entries; entry != NULL; entry = entry->next) {
        if (entry->group != NULL || strcmp(entry->file, file) != 0) {
            file = entry->file;
            group = entry->group;
            tc = NULL;
        }
        for (int i = 0; entry->test != NULL && i < entry->times; i++) {
            if (number++ % share.of == share.number) {
                tc = tc != NULL ? tc : begin_case(suite, group);
                tcase_add_loop_test(tc, entry->test, entry->first + i,
                                    entry->first + i + 1);
            }
        }
    }
    return suite;
}

static int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    scratch_open();
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    scratch_close(failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- shares beside each other ----------------------------------------------------- */

static void start_share(struct share share, int out)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();

    if (pid < 0) {
        perror("fork");
        exit(EXIT_FAILURE);
    }
    if (pid > 0) {
        return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(out, STDOUT_FILENO) < 0 || close(out) < 0) {
        _exit(EXIT_FAILURE);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* whole lines go into the pipe */
    exit(run_suite(collect_tests(share)));
}

/* A line of a share's TAP, with its number among all cases. */
static void print_line(const char *line, int *number)
{
    const char *result = strncmp(line, "not ", 4) == 0 ? line + 4 : line;
    const char *name = strncmp(result, "ok ", 3) == 0 ? strstr(result, " - ") : NULL;

    if (name != NULL) {
        printf("%sok %d%s", result == line ? "" : "not ", ++*number, name);
    } else if (strncmp(line, "1..", 3) != 0) {
        fputs(line, stdout);
    }
    (void)fflush(stdout);
}

static int run_shares(int of, int cases)
{
    int fds[2], status, number = 0, code = EXIT_SUCCESS;
    char *line = NULL;
    size_t size = 0;
    FILE *in;

    if (pipe2(fds, O_CLOEXEC) < 0 || (in = fdopen(fds[0], "re")) == NULL) {
        perror("pipe2");
        return EXIT_FAILURE;
    }
    for (int i = 0; i < of; i++) {
        start_share((struct share){ i, of }, fds[1]);
    }
    (void)close(fds[1]);
    while (getline(&line, &size, in) > 0) {
        print_line(line, &number);
    }
    free(line);
    (void)fclose(in);
    while (wait(&status) > 0) {
        code = status != 0 ? EXIT_FAILURE : code;
    }
    printf("1..%d\n", cases);
    return code;
}

/* How many cases run beside each other: those of some programs mostly wait. */
static int at_once(int cases)
{
    const char *text = getenv("LATCHD_TEST_AT_ONCE");
    int count = text == NULL ? 1 : atoi(text);

    return count < cases ? count : cases;
}

int main(int argc, char **argv)
{
    int cases, shares;

    if (test_collect != NULL) {
        test_collect(argc, argv);
    }
    cases = count_cases();
    shares = at_once(cases);
    return shares > 1 ? run_shares(shares, cases)
                      : run_suite(collect_tests((struct share){ 0, 1 }));
}
