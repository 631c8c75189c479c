#include "support/runner.h"

#include "support/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* By file, then by line: constructors run in any order. */
static struct test_entry *entries;

__attribute__((weak)) Suite *test_suite(void);

static int compare_entries(const struct test_entry *a, const struct test_entry *b)
{
    int order = strcmp(a->file, b->file);

    return order != 0 ? order : a->line - b->line;
}

void runner_add(struct test_entry *entry)
{
    struct test_entry **at = &entries;

    while (*at != NULL && compare_entries(*at, entry) < 0) {
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
    tcase_add_unchecked_fixture(tc, group->setup_once, NULL);
    if (group->timeout_s != 0) {
        tcase_set_timeout(tc,
                          group->timeout_s == TEST_NO_TIMEOUT ? 0 : group->timeout_s);
    }
    return tc;
}

static Suite *collect_tests(void)
{
    Suite *suite = suite_create(program_invocation_short_name);
    const char *file = "";
    TCase *tc = NULL;

    for (const struct test_entry *entry = entries; entry != NULL; entry = entry->next) {
        if (entry->group != NULL || strcmp(entry->file, file) != 0) {
            file = entry->file;
            tc = begin_case(suite, entry->group);
        }
        if (entry->test != NULL) {
            tcase_add_loop_test(tc, entry->test, 0, entry->times);
        }
    }
    return suite;
}

int main(void)
{
    SRunner *runner =
        srunner_create(test_suite != NULL ? test_suite() : collect_tests());
    int failed;

    scratch_open();
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    scratch_close(failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
