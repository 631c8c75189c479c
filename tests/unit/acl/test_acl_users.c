#include "acl/acl.h"
#include "support/runner.h"
#include "unit/acl/acl_catalog.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct acl *acl;
static char err[ACL_REASON_MAX];

static void setup(void)
{
    acl = acl_new(&CATALOG);
    err[0] = '\0';
}

static void teardown(void)
{
    acl_free(acl);
}

static struct acl_user *set(const char *name, struct span rule)
{
    return acl_set(acl, span_str(name), &rule, rule.len == 0 ? 0 : 1, err, sizeof(err));
}

static bool can_log_in(const char *name, const char *password)
{
    return acl_login(acl, span_str(name), span_str(password)) != NULL;
}

static void expect_saved(const char *text)
{
    struct buf out = { 0 };

    acl_save(acl, &out);
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), text);
    buf_reset(&out);
}

/* The error in the text, or NULL; lives until the next call. */
static const char *load(const char *text)
{
    static struct buf reterr;
    bool has_default;

    buf_reset(&reterr);
    if (acl_load(acl, "f", span_str(text), SPAN(""), &has_default, &reterr)) {
        ck_assert_int_eq(has_default, strstr(text, "user default") != NULL);
        ck_assert_uint_eq(buf_len(&reterr), 0);
        return NULL;
    }
    buf_add(&reterr, "", 1);
    return buf_ptr(&reterr);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(at_first_there_is_default_and_he_may_do_anything)
{
    ck_assert(acl_is_open(acl));
    ck_assert(permissions_may_anything(&acl_default(acl)->terms));
    ck_assert(can_log_in("default", "whatever"));
    ck_assert(!can_log_in("nobody", ""));
    expect_saved("user default on nopass ~* &* +@all\n");
}

START_TEST(the_password_of_default_is_set_and_taken_away)
{
    acl_set_password(acl, SPAN("secret"));
    ck_assert(!acl_is_open(acl));
    ck_assert(can_log_in("default", "secret"));
    ck_assert(!can_log_in("default", "Secret"));
    acl_set_password(acl, SPAN("other"));
    ck_assert(!can_log_in("default", "secret"));
    acl_set_password(acl, SPAN(""));
    ck_assert(acl_is_open(acl));
}

START_TEST(a_user_logs_in_when_he_is_on_and_has_that_password)
{
    ck_assert_ptr_nonnull(set("ann", SPAN(">pw")));
    ck_assert(!can_log_in("ann", "pw"));
    ck_assert_ptr_nonnull(set("ann", SPAN("on")));
    ck_assert(can_log_in("ann", "pw"));
    ck_assert(!can_log_in("ann", "pwx"));
    ck_assert(!can_log_in("ann", ""));
    ck_assert(!can_log_in("an", "pw"));
    ck_assert_ptr_nonnull(set("ann", SPAN("off")));
    ck_assert(!can_log_in("ann", "pw"));
}

START_TEST(rules_are_applied_all_or_none)
{
    const struct span rules[] = { SPAN("on"), SPAN("~a"), SPAN("+nosuch") };

    ck_assert_ptr_null(acl_set(acl, SPAN("ann"), rules, 3, err, sizeof(err)));
    ck_assert_str_eq(err, "Error in ACL SETUSER modifier '+nosuch': Unknown command or "
                          "category name in ACL");
    ck_assert_ptr_null(acl_find(acl, SPAN("ann")));
    ck_assert_ptr_nonnull(set("ann", SPAN("nopass")));
    ck_assert_ptr_null(acl_set(acl, SPAN("ann"), rules, 3, err, sizeof(err)));
    expect_saved("user ann off nopass resetchannels -@all\n"
                 "user default on nopass ~* &* +@all\n");
}

START_TEST(names_that_a_line_cannot_hold_are_refused)
{
    char name[ACL_NAME_MAX + 1];

    ck_assert_ptr_null(set("a b", SPAN("on")));
    ck_assert_str_eq(err, "Usernames can't contain spaces or null characters");
    ck_assert_ptr_null(acl_set(acl, SPAN("a\0b"), NULL, 0, err, sizeof(err)));
    ck_assert_ptr_null(set("a\nb", SPAN("on")));
    ck_assert_ptr_null(set("", SPAN("on")));
    memset(name, 'x', sizeof(name));
    ck_assert_ptr_null(
        acl_set(acl, span_of(name, ACL_NAME_MAX + 1), NULL, 0, err, sizeof(err)));
    ck_assert_ptr_nonnull(
        acl_set(acl, span_of(name, ACL_NAME_MAX), NULL, 0, err, sizeof(err)));
}

START_TEST(a_user_that_is_made_again_is_another_one)
{
    struct acl_user *old = acl_ref(set("ann", SPAN("on")));
    uint32_t id = old->id;

    ck_assert_uint_eq(set("ann", SPAN("off"))->id, id);
    ck_assert(acl_delete(acl, SPAN("ann")));
    ck_assert(!acl_delete(acl, SPAN("ann")));
    ck_assert(old->gone);
    acl_unref(old);
    ck_assert_uint_ne(set("ann", SPAN("on"))->id, id);
    ck_assert(!acl_delete(acl, SPAN("default")));
}

START_TEST(a_file_replaces_all_users)
{
    struct acl_user *bob, *ann = acl_ref(set("ann", SPAN("on")));

    bob = acl_ref(set("bob", SPAN("on")));
    ck_assert_ptr_null(load("# who may come in\n"
                            "\n"
                            "user  bob\ton >x +@lock ~a*\r\n"
                            "  user default off"));
    ck_assert(ann->gone);
    ck_assert(!bob->gone);
    ck_assert_ptr_eq(acl_find(acl, SPAN("bob")), bob);
    ck_assert(can_log_in("bob", "x"));
    ck_assert(!acl_is_open(acl));
    expect_saved("user bob on "
                 "#2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 "
                 "~a* resetchannels -@all +@lock\n"
                 "user default off resetchannels -@all\n");
    ck_assert_ptr_null(load("user bob on"));
    ck_assert(acl_is_open(acl)); /* as it was at first */
    acl_unref(ann);
    acl_unref(bob);
}

START_TEST(default_keeps_requirepass_where_the_file_does_not_name_him)
{
    struct buf reterr = { 0 };
    bool has_default;

    ck_assert(
        acl_load(acl, "f", SPAN("user ann on"), SPAN("pw"), &has_default, &reterr));
    ck_assert(!has_default);
    ck_assert(!acl_is_open(acl));
    ck_assert(can_log_in("default", "pw"));
    buf_reset(&reterr);
}

static const struct {
    const char *text;
    const char *why; /* without the last words */
} FILES[] = {
    { "foo", "f:1 should start with user keyword followed by the username." },
    { "\nuser\n", "f:2 should start with user keyword followed by the username." },
    { "user a on +nosuch\nuser b\nuser b on\n",
      "f:1: Error in applying operation '+nosuch': Unknown command or category name in "
      "ACL. WARNING: Duplicate user 'b' found on line 3." },
    { "user a (+lock ~a)",
      "f:1: Error in applying operation '(+lock': Selectors are not supported. "
      "f:1: Error in applying operation '~a)'" },
    { "user a #secret",
      "f:1: Error in applying operation '#(not shown)': The password" },
    { "user a <secret",
      "f:1: Error in applying operation '<(not shown)': The password" },
    { "user \x01 on", "f:1: a username has" },
};

START_TEST(a_bad_file_says_where_and_changes_nothing, TEST_ROWS(FILES))
{
    const char *why;

    ck_assert_ptr_nonnull(set("ann", SPAN("on")));
    why = load(FILES[_i].text);
    ck_assert_ptr_nonnull(why);
    if (_i != 3) { /* whose last rule is good */
        ck_assert_msg(strncmp(why, FILES[_i].why, strlen(FILES[_i].why)) == 0, "%s",
                      why);
    }
    ck_assert_ptr_nonnull(strstr(why, "no change to the previously active ACL rules"));
    ck_assert_ptr_null(strstr(why, "secret"));
    expect_saved(
        "user ann on resetchannels -@all\nuser default on nopass ~* &* +@all\n");
}

START_TEST(a_file_full_of_mistakes_is_told_of_briefly)
{
    struct buf text = { 0 };
    const char *why;

    for (int i = 0; i < 10000; i++) {
        buf_add_str(&text, "nonsense\n");
    }
    buf_add(&text, "", 1);
    why = load(buf_ptr(&text));
    ck_assert_ptr_nonnull(why);
    ck_assert_uint_lt(strlen(why), 4096);
    buf_reset(&text);
}

START_TEST(there_are_not_more_users_than_the_limit)
{
    char name[32];

    for (int i = 1; i < ACL_USERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "u%d", i);
        ck_assert_ptr_nonnull(set(name, SPAN_NONE));
    }
    ck_assert_ptr_null(set("one-more", SPAN_NONE));
    ck_assert_ptr_nonnull(set("u1", SPAN("on")));
}
