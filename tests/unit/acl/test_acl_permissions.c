#include "acl/permissions.h"
#include "support/runner.h"
#include "unit/acl/acl_catalog.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define HASH_OF_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

static struct permissions terms;

static void setup(void)
{
    permissions_init(&terms);
}

static void teardown(void)
{
    permissions_fini(&terms);
}

/* Rules with a space between; the first mistake, or NULL. */
static const char *apply(const char *rules)
{
    const char *why = NULL;

    while (*rules != '\0' && why == NULL) {
        size_t len = strcspn(rules, " ");

        why = permissions_apply(&terms, &CATALOG, span_of(rules, len));
        rules += len + (rules[len] == ' ');
    }
    return why;
}

static void expect_line(const char *text)
{
    struct buf line = { 0 };

    permissions_add_line(&terms, &CATALOG, &line);
    buf_add(&line, "", 1);
    ck_assert_str_eq(buf_ptr(&line), text);
    buf_reset(&line);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(a_new_user_may_do_nothing)
{
    expect_line("off resetchannels -@all");
    for (size_t i = 0; i < CATALOG.command_count; i++) {
        ck_assert(!permissions_may_run(&terms, i));
    }
    ck_assert(!permissions_may_name(&terms, SPAN("a"), PERM_READ));
    ck_assert(!permissions_may_channel(&terms, SPAN("a")));
    ck_assert(!permissions_password_fits(&terms, &(struct secret){ { 0 } }));
}

/* Rules, and how they are told. */
static const struct {
    const char *rules;
    const char *line;
} LINES[] = {
    { "on nopass ~* &* +@all", "on nopass ~* &* +@all" },
    { "ON NOPASS ALLKEYS ALLCHANNELS ALLCOMMANDS", "on nopass ~* &* +@all" },
    { ">x", "off #" HASH_OF_X " resetchannels -@all" },
    { ">x >x #" HASH_OF_X, "off #" HASH_OF_X " resetchannels -@all" },
    { ">x <x", "off resetchannels -@all" },
    { ">x !" HASH_OF_X, "off resetchannels -@all" },
    { ">x nopass", "off nopass resetchannels -@all" },
    { "nopass >x resetpass", "off resetchannels -@all" },
    { "~a %R~b %W~c %RW~d %wr~e", "off ~a %R~b %W~c ~d ~e resetchannels -@all" },
    { "%R~a %W~a", "off ~a resetchannels -@all" },
    { "~a ~b resetkeys ~c", "off ~c resetchannels -@all" },
    { "~a allkeys", "off ~* resetchannels -@all" },
    { "~a %R~* %W~*", "off ~* resetchannels -@all" },
    { "%R~*", "off %R~* resetchannels -@all" },
    { "&a &b", "off resetchannels &a &b -@all" },
    { "&a resetchannels &b", "off resetchannels &b -@all" },
    { "+lock +LOOK -free", "off resetchannels -@all +lock +look -free" },
    { "+@all -@admin +client|kill", "off resetchannels +@all -@admin +client|kill" },
    { "+client|kill +client -client|kill",
      "off resetchannels -@all +client -client|kill" },
    { "+@lock -free +@lock", "off resetchannels -@all -free +@lock" },
    { "+lock +@all", "off resetchannels +@all" },
    { "+@all nocommands +@read", "off resetchannels -@all +@read" },
    { "on skip-sanitize-payload", "on skip-sanitize-payload resetchannels -@all" },
    { "on nopass ~* &* +@all reset", "off sanitize-payload resetchannels -@all" },
    { "clearselectors", "off resetchannels -@all" },
};

START_TEST(rules_are_told_as_they_count, TEST_ROWS(LINES))
{
    ck_assert_ptr_null(apply(LINES[_i].rules));
    expect_line(LINES[_i].line);
}

START_TEST(what_is_told_can_be_read_again, TEST_ROWS(LINES))
{
    struct buf line = { 0 };

    ck_assert_ptr_null(apply(LINES[_i].rules));
    permissions_add_line(&terms, &CATALOG, &line);
    buf_add(&line, "", 1);
    permissions_fini(&terms);
    ck_assert_ptr_null(apply(buf_ptr(&line)));
    expect_line(LINES[_i].line);
    buf_reset(&line);
}

static const struct {
    const char *rules;
    const char *why; /* its beginning */
} MISTAKES[] = {
    { "foo", "Syntax error" },
    { "lock", "Syntax error" },
    { "+nosuch", "Unknown command or category" },
    { "+", "Unknown command or category" },
    { "-@nosuch", "Unknown command or category" },
    { "+@", "Unknown command or category" },
    { "+client|nosuch", "Unknown command or category" },
    { "+nosuch|kill", "Unknown command or category" },
    { "+client|", "Syntax error" },
    { "+lock|first", "Allowing first-arg" },
    { "+client|kill|x", "Unknown command or category" },
    { "(+lock", "Selectors are not supported" },
    { "(+lock)", "Selectors are not supported" },
    { "#abc", "The password hash must be" },
    { "!abc", "The password hash must be" },
    { "#2D711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
      "The password hash must be" },
    { "<x", "The password you are trying to remove" },
    { "!" HASH_OF_X, "The password you are trying to remove" },
    { "%~a", "Syntax error" },
    { "%X~a", "Syntax error" },
    { "%RR~a", "Syntax error" },
    { "%R", "Syntax error" },
    { "%", "Syntax error" },
    { "~a\tb", "Syntax error" },
    { "&a\tb", "Syntax error" },
    { "~* ~a", "Adding a pattern after the * pattern (or the 'allkeys'" },
    { "~* %R~a", "Adding a pattern after the * pattern (or the 'allkeys'" },
    { "&* &a", "Adding a pattern after the * pattern (or the 'allchannels'" },
};

START_TEST(a_bad_rule_says_why, TEST_ROWS(MISTAKES))
{
    const char *why = apply(MISTAKES[_i].rules);

    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strncmp(why, MISTAKES[_i].why, strlen(MISTAKES[_i].why)) == 0,
                  "%s: %s", MISTAKES[_i].rules, why);
}

START_TEST(commands_follow_the_last_rule_about_them)
{
    ck_assert_ptr_null(apply("+@lock -@admin"));
    ck_assert(permissions_may_run(&terms, CMD_LOCK));
    ck_assert(permissions_may_run(&terms, CMD_LOOK));
    ck_assert(!permissions_may_run(&terms, CMD_FREE));
    ck_assert(!permissions_may_run(&terms, CMD_CLIENT_ID));
    ck_assert_ptr_null(apply("+client"));
    ck_assert(permissions_may_run(&terms, CMD_CLIENT));
    ck_assert(permissions_may_run(&terms, CMD_CLIENT_KILL));
    ck_assert_ptr_null(apply("-client|kill"));
    ck_assert(permissions_may_run(&terms, CMD_CLIENT_ID));
    ck_assert(!permissions_may_run(&terms, CMD_CLIENT_KILL));
    ck_assert(!permissions_may_anything(&terms));
    ck_assert_ptr_null(apply("+@all ~* &*"));
    ck_assert(permissions_may_anything(&terms));
    ck_assert_ptr_null(apply("-lock"));
    ck_assert(!permissions_may_anything(&terms));
}

START_TEST(names_are_matched_with_what_is_wanted)
{
    ck_assert_ptr_null(apply("~both:* %R~look:* %W~take:*"));
    ck_assert(permissions_may_name(&terms, SPAN("both:1"), PERM_READ));
    ck_assert(permissions_may_name(&terms, SPAN("both:1"), PERM_BOTH));
    ck_assert(permissions_may_name(&terms, SPAN("look:1"), PERM_READ));
    ck_assert(!permissions_may_name(&terms, SPAN("look:1"), PERM_WRITE));
    ck_assert(permissions_may_name(&terms, SPAN("take:1"), PERM_WRITE));
    ck_assert(!permissions_may_name(&terms, SPAN("take:1"), PERM_READ));
    ck_assert(!permissions_may_name(&terms, SPAN("other"), PERM_READ));
    ck_assert(!permissions_may_name(&terms, SPAN("xboth:1"), PERM_READ));
    /* As in Redis, one pattern has to give all of it. */
    ck_assert_ptr_null(apply("resetkeys %R~a* %W~*a"));
    ck_assert(!permissions_may_name(&terms, SPAN("a"), PERM_BOTH));
}

START_TEST(channels_are_matched_but_patterns_are_compared)
{
    ck_assert_ptr_null(apply("&granted:a*"));
    ck_assert(permissions_may_channel(&terms, SPAN("granted:ab")));
    ck_assert(!permissions_may_channel(&terms, SPAN("granted:b")));
    ck_assert(permissions_may_channels(&terms, SPAN("granted:a*")));
    ck_assert(!permissions_may_channels(&terms, SPAN("granted:ab*")));
    ck_assert_ptr_null(apply("&*"));
    ck_assert(permissions_may_channels(&terms, SPAN("granted:ab*")));
}

START_TEST(every_list_has_its_limit)
{
    char rule[PERM_PASSWORD_MAX + 3];

    for (int i = 0; i < PERM_PATTERNS_MAX; i++) {
        (void)snprintf(rule, sizeof(rule), "~n%d &c%d", i, i);
        ck_assert_ptr_null(apply(rule));
    }
    ck_assert_ptr_nonnull(apply("~one-more"));
    ck_assert_ptr_null(apply("~n0")); /* is there */
    ck_assert_ptr_nonnull(apply("&one-more"));
    for (int i = 0; i < PERM_PASSWORDS_MAX; i++) {
        (void)snprintf(rule, sizeof(rule), ">pw%d", i);
        ck_assert_ptr_null(apply(rule));
    }
    ck_assert_ptr_nonnull(apply(">one-more"));
    ck_assert_ptr_null(apply("resetpass resetkeys"));
    memset(rule, 'x', sizeof(rule));
    rule[0] = '~';
    ck_assert_ptr_nonnull(
        permissions_apply(&terms, &CATALOG, span_of(rule, PERM_PATTERN_MAX + 2)));
    ck_assert_ptr_null(
        permissions_apply(&terms, &CATALOG, span_of(rule, PERM_PATTERN_MAX + 1)));
    rule[0] = '>';
    ck_assert_ptr_nonnull(
        permissions_apply(&terms, &CATALOG, span_of(rule, PERM_PASSWORD_MAX + 2)));
    ck_assert_ptr_null(
        permissions_apply(&terms, &CATALOG, span_of(rule, PERM_PASSWORD_MAX + 1)));
}

START_TEST(one_of_several_passwords_fits)
{
    struct secret x, y, z;

    secret_hash(SPAN("x"), &x);
    secret_hash(SPAN("y"), &y);
    secret_hash(SPAN("z"), &z);
    ck_assert_ptr_null(apply(">x >y"));
    ck_assert(permissions_password_fits(&terms, &x));
    ck_assert(permissions_password_fits(&terms, &y));
    ck_assert(!permissions_password_fits(&terms, &z));
    ck_assert_ptr_null(apply("nopass"));
    ck_assert(permissions_password_fits(&terms, &z));
}

START_TEST(a_random_password_has_the_bits_that_were_asked_for)
{
    struct buf one = { 0 }, other = { 0 };

    ck_assert(secret_random(SECRET_BITS_DEFAULT, &one));
    ck_assert(secret_random(SECRET_BITS_DEFAULT, &other));
    ck_assert_uint_eq(buf_len(&one), 64);
    ck_assert(!span_eq(buf_span(&one), buf_span(&other)));
    buf_clear(&one);
    ck_assert(secret_random(5, &one));
    ck_assert_uint_eq(buf_len(&one), 2);
    buf_clear(&one);
    ck_assert(secret_random(SECRET_BITS_MAX, &one));
    ck_assert_uint_eq(buf_len(&one), SECRET_BITS_MAX / 4);
    buf_reset(&one);
    buf_reset(&other);
}
