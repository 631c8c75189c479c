#include "support/runner.h"
#include "util/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Standard error of this process, which Check forks for every test. */
static FILE *file;
static char *text;

static void setup(void)
{
    file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    text = NULL;
}

static void teardown(void)
{
    (void)fclose(file);
    free(text);
}

/* All that was written so far. */
static const char *written(void)
{
    long len = lseek(fileno(file), 0, SEEK_END);

    free(text);
    text = calloc(1, (size_t)len + 1);
    ck_assert_int_eq(pread(fileno(file), text, (size_t)len, 0), len);
    return text;
}

/* Without the time. */
static const char *after_time(void)
{
    const char *space = strchr(written(), ' ');

    return space == NULL ? "" : space + 1;
}

static const struct log_about HOSTILE = {
    .client = 12,
    .address = SPAN("127.0.0.1:7"),
    .library = SPAN("redis-py 8.0"),
    .name = SPAN("a\nerror redis: \"gone\" owner=x\xff\x00"),
    .owner = SPAN("o=x"),
    .token = 7,
};

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(fields_follow_the_message)
{
    const struct log_about about = { .client = 12, .name = SPAN("job:1") };

    log_setup(LOG_NOTICE, LOG_TEXT);
    log_about(LOG_NOTICE, "locks", &about, "lost %d", 3);
    ck_assert_str_eq(after_time(), "notice locks: lost 3 client=12 name=job:1\n");
}

START_TEST(what_clients_say_cannot_forge_a_field)
{
    log_setup(LOG_NOTICE, LOG_TEXT);
    log_about(LOG_WARNING, "locks", &HOSTILE, "see %s", "a\nb");
    ck_assert_str_eq(after_time(),
                     "warning locks: see a?b client=12 address=127.0.0.1:7 "
                     "library=\"redis-py 8.0\" "
                     "name=\"a\\nerror redis: \\\"gone\\\" owner=x\\xff\\x00\" "
                     "owner=\"o=x\" token=7\n");
}

START_TEST(json_lines_are_objects)
{
    const char *line;

    log_setup(LOG_NOTICE, LOG_JSON);
    log_about(LOG_NOTICE, "locks", &HOSTILE, "a \"b\" \\ %s", "\xc3\xa4\xc3\n");
    line = written();
    ck_assert(strncmp(line, "{\"time\":\"2", 10) == 0);
    ck_assert_ptr_nonnull(
        strstr(line, "\"level\":\"notice\",\"module\":\"locks\",\"pid\":"));
    ck_assert_ptr_nonnull(strstr(
        line,
        "\"message\":\"a \\\"b\\\" \\\\\\\\ \xc3\xa4\\\\xc3\\\\x0a\",\"client\":12,"));
    ck_assert_ptr_nonnull(strstr(line, "\"name\":\"a\\\\x0aerror redis: \\\"gone\\\" "
                                       "owner=x\\\\xff\\\\x00\",\"owner\":\"o=x\","
                                       "\"token\":7}\n"));
}

START_TEST(the_level_decides)
{
    const struct log_about about = { .client = 1 };

    log_setup(LOG_WARNING, LOG_TEXT);
    log_notice("a", "b");
    log_about(LOG_NOTICE, "a", &about, "b");
    ck_assert_str_eq(written(), "");
    log_set_level(LOG_NOTICE);
    ck_assert(log_enabled(LOG_NOTICE) && !log_enabled(LOG_INFO));
    log_notice("a", "b");
    ck_assert_str_eq(after_time(), "notice a: b\n");
}

START_TEST(a_flood_is_limited_and_said)
{
    const struct log_about about = { .client = 1 };
    size_t lines = 0;

    log_setup(LOG_INFO, LOG_TEXT);
    for (int i = 0; i < LOG_ABOUT_MAX + 5; i++) {
        log_about(LOG_INFO, "a", &about, "b");
    }
    log_about(LOG_NOTICE, "a", &about, "of another level");
    log_info("a", "about nobody");
    log_second();
    log_about(LOG_INFO, "a", &about, "next");
    for (const char *at = written(); (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    ck_assert_uint_eq(lines, LOG_ABOUT_MAX + 4);
    ck_assert_ptr_nonnull(strstr(text, "info log: 5 more lines about clients"));
    ck_assert_ptr_nonnull(strstr(text, "of another level"));
    ck_assert_ptr_nonnull(strstr(text, "about nobody"));
    ck_assert_ptr_nonnull(strstr(text, "next"));
}

/* As systemd sets it for a service whose standard error is such a file. */
static void be_read_by_journald(bool other_file)
{
    char stream[64];
    struct stat st;

    ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
    (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino + (other_file ? 1 : 0));
    ck_assert_int_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
    log_detect_journal();
}

START_TEST(journald_is_told_the_level_and_has_a_time_of_its_own)
{
    const struct log_about about = { .client = 12 };

    be_read_by_journald(false);
    log_setup(LOG_DEBUG, LOG_TEXT);
    log_debug("a", "b");
    log_info("a", "b\n<0>c");
    log_notice("a", "b");
    log_about(LOG_WARNING, "a", &about, "b");
    log_error("a", "b");
    ck_assert_str_eq(written(), "<7>debug a: b\n<6>info a: b?<0>c\n<5>notice a: b\n"
                                "<4>warning a: b client=12\n<3>error a: b\n");
}

START_TEST(json_for_journald_has_the_level_before_it)
{
    be_read_by_journald(false);
    log_setup(LOG_NOTICE, LOG_JSON);
    log_warning("a", "b");
    ck_assert_int_eq(strncmp(written(), "<4>{\"time\":\"2", 13), 0);
}

START_TEST(another_file_than_journalds_gets_the_time)
{
    static const char *const STREAMS[] = { "", ":", "8", "8:", "8:x", ":8", "-1:8" };

    be_read_by_journald(true);
    log_setup(LOG_NOTICE, LOG_TEXT);
    log_notice("a", "b");
    ck_assert_str_eq(after_time(), "notice a: b\n");
    ck_assert_str_eq(log_priority(LOG_ERROR), "");
    for (size_t i = 0; i < sizeof(STREAMS) / sizeof(STREAMS[0]); i++) {
        ck_assert_int_eq(setenv("JOURNAL_STREAM", STREAMS[i], 1), 0);
        log_detect_journal();
        ck_assert_str_eq(log_priority(LOG_ERROR), "");
    }
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    log_detect_journal();
    ck_assert_str_eq(log_priority(LOG_ERROR), "");
}

START_TEST(a_log_that_nobody_reads_is_not_waited_for)
{
    enum { LINES = 5000 };
    char some[8192];
    ssize_t len;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    log_setup(LOG_INFO, LOG_TEXT);
    for (int i = 0; i < LINES; i++) {
        log_info("a", "a line of some length, so that the pipe is full before the end");
    }
    do { /* what fits is there */
        len = read(ends[0], some, sizeof(some));
        ck_assert_int_gt(len, 0);
    } while (len == sizeof(some));
    log_info("a", "last");
    len = read(ends[0], some, sizeof(some) - 1);
    ck_assert_int_gt(len, 0);
    some[len] = '\0';
    ck_assert_ptr_nonnull(strstr(some, " lines could not be written\n"));
    ck_assert_ptr_nonnull(strstr(some, "info a: last\n"));
}

START_TEST(a_full_disk_is_no_reason_to_stop)
{
    int full = open("/dev/full", O_WRONLY);

    ck_assert_int_ge(full, 0);
    ck_assert_int_ge(dup2(full, STDERR_FILENO), 0);
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("a", "lost");
    log_info("a", "lost as well");
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    log_info("a", "there is room again");
    ck_assert_ptr_nonnull(strstr(written(), "log: 2 lines could not be written\n"));
    ck_assert_ptr_nonnull(strstr(text, "info a: there is room again\n"));
}

START_TEST(a_text_is_news_once_and_some_texts_are_remembered)
{
    struct log_recent recent = { 0 };
    char name[] = "0";

    ck_assert(log_is_news(&recent, "a"));
    ck_assert(!log_is_news(&recent, "a"));
    for (int i = 1; i < LOG_RECENT_MAX; i++) {
        name[0] = (char)('0' + i);
        ck_assert(log_is_news(&recent, name));
    }
    ck_assert(!log_is_news(&recent, "a"));
    ck_assert(log_is_news(&recent, "one more takes the place of the oldest"));
    ck_assert(log_is_news(&recent, "a"));
}
