/* runner: the main() of all Check programs. A test adds itself to its program:
 *
 *   TEST_GROUP(.setup = open_it, .teardown = close_it, .timeout_s = 60);
 *
 *   START_TEST(a_sentence_that_is_true)   or   START_TEST(a_sentence, 3)
 *   {
 *   }
 *
 * The number, TEST_ROWS(table) of a table, is how often the test runs, with `_i` from 0
 * on. A group holds for the tests below it in its file; before the first one there is
 * no fixture, and Check's own timeout. */
#ifndef LATCHD_TESTS_RUNNER_H
#define LATCHD_TESTS_RUNNER_H

#include <check.h>

/* For the parts of a header that not each test program uses. */
#define MAYBE_UNUSED __attribute__((unused))

struct test_group {
    void (*setup)(void);      /* in the process of each test */
    void (*teardown)(void);   /* likewise, unless the test failed */
    void (*setup_once)(void); /* in the process that starts them */
    void (*teardown_once)(void);
    int timeout_s; /* 0: Check's own; TEST_NO_TIMEOUT */
};

#define TEST_NO_TIMEOUT (-1)

/* A line of a file: a test, or where a group begins. Lives as long as the program. */
struct test_entry {
    const TTest *test;              /* NULL: a group */
    const struct test_group *group; /* NULL: a test */
    int first, times;               /* `_i` begins with first */
    const char *file;
    int line;
    struct test_entry *next; /* the runner's */
};

/* Before main(), in any order. */
void runner_add(struct test_entry *entry);

/* A program may add tests that it reads from a file, when it starts. */
void test_collect(int argc, char **argv);

#define TEST_CONCAT_(a, b) a##b
#define TEST_CONCAT(a, b) TEST_CONCAT_(a, b)

/* Adds an entry; `id` is unlike all others of the file. */
#define TEST_ADD_(id, ...)                                                             \
    __attribute__((constructor)) static void TEST_CONCAT(add_, id)(void)               \
    {                                                                                  \
        static struct test_entry entry;                                                \
                                                                                       \
        entry =                                                                        \
            (struct test_entry){ .file = __FILE__, .line = __LINE__, __VA_ARGS__ };    \
        runner_add(&entry);                                                            \
    }

#define TEST_GROUP(...)                                                                \
    static const struct test_group TEST_CONCAT(group_, __LINE__) = { __VA_ARGS__ };    \
    TEST_ADD_(TEST_CONCAT(group_, __LINE__), .group = &TEST_CONCAT(group_, __LINE__))  \
    struct test_group

#define TEST_TIMES_(name, count, ...)                                                  \
    static void name##_fn(int _i);                                                     \
    static const TTest name##_ttest = { #name, name##_fn, __FILE__, __LINE__ };        \
    static const TTest *const name CK_ATTRIBUTE_UNUSED = &name##_ttest;                \
    TEST_ADD_(name, .test = &name##_ttest, .times = (count))                           \
    static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)

#define TEST_ROWS(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* Ends a test that cannot run here, before it did anything. Check knows no such end: it
 * prints where a test that passed was last, which TAP's readers take for a directive.
 */
#define TEST_SKIP(reason)                                                              \
    do {                                                                               \
        _mark_point(__FILE__ " # SKIP " reason, __LINE__);                             \
        return;                                                                        \
    } while (0)

#undef START_TEST
#define START_TEST(...) TEST_TIMES_(__VA_ARGS__, 1, 0)

#endif
