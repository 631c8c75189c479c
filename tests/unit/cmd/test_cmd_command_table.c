#include "cmd/command_table.h"
#include "cmd/lock_args.h"
#include "support/runner.h"

#include <ctype.h>
#include <stdio.h>

START_TEST(rows_are_sorted_and_unique)
{
    for (size_t i = 1; i < COMMAND_COUNT; i++) {
        ck_assert_msg(strcmp(COMMANDS[i - 1].name, COMMANDS[i].name) < 0, "%s, %s",
                      COMMANDS[i - 1].name, COMMANDS[i].name);
    }
}

/* The fewest arguments that the usage line allows, and whether there may be more. */
static void usage_bounds(const char *usage, size_t *ret_min, bool *ret_open)
{
    int depth = 0;

    *ret_min = 0;
    *ret_open = strstr(usage, "...") != NULL || strchr(usage, '[') != NULL;
    for (const char *p = usage; *p != '\0'; p++) {
        bool start = p == usage || strchr(" ([", p[-1]) != NULL;

        depth += (*p == '[') - (*p == ']');
        if (*p == '(' && depth == 0) { /* a choice: its first part counts */
            const char *end = strchr(p, ')');
            size_t len[8] = { 0 }, part = 0;

            for (const char *q = p + 1; q < end; q++) {
                part += *q == '|';
                len[part] += isalpha((unsigned char)*q) && strchr(" (", q[-1]) != NULL;
            }
            for (size_t i = 1; i <= part; i++) {
                len[0] = len[i] < len[0] ? len[i] : len[0];
                *ret_open = *ret_open || len[i] != len[0];
            }
            *ret_min += len[0];
            p = end;
        } else if (depth == 0 && start && isalpha((unsigned char)*p)) {
            (*ret_min)++;
        }
    }
}

START_TEST(a_row_is_complete_and_its_arity_fits_its_usage, (int)COMMAND_COUNT)
{
    const struct command *c = &COMMANDS[_i];
    size_t words = command_is_sub(c) ? 2 : 1, min;
    bool open;

    ck_assert_uint_lt(strlen(c->name), COMMAND_NAME_MAX);
    ck_assert(c->run != NULL && c->summary[0] != '\0' && c->since[0] != '\0');
    ck_assert_ptr_eq(command_find(span_str(c->name)), c);
    for (const char *p = c->name; *p != '\0'; p++) {
        ck_assert(islower((unsigned char)*p) || *p == '|' || *p == '-');
    }
    ck_assert_uint_ne(c->acl & (ACL_FAST | ACL_SLOW), 0);
    ck_assert_uint_eq(c->acl >> ACL_CATEGORY_COUNT, 0);
    if ((c->flags & CMD_CONTAINER) != 0) {
        return;
    }
    usage_bounds(c->usage, &min, &open);
    if (strcmp(c->name, "client|kill") == 0 || strcmp(c->name, "cluster") == 0 ||
        strcmp(c->name, "quit") == 0) {
        return; /* one of several forms; whatever subcommand; anything */
    }
    if (strcmp(c->name, "cancel") == 0 || strcmp(c->name, "forceunlock") == 0) {
        min = (size_t)-c->arity - words; /* the handler says what is missing */
        open = true;
    }
    ck_assert_msg((size_t)(c->arity < 0 ? -c->arity : c->arity) == words + min,
                  "%s: arity %d, usage %s", c->name, c->arity, c->usage);
    ck_assert_msg((c->arity < 0) == open, "%s: arity %d, usage %s", c->name, c->arity,
                  c->usage);
}

START_TEST(names_are_found_in_any_case)
{
    ck_assert_str_eq(command_find(SPAN("LoCk"))->name, "lock");
    ck_assert_str_eq(command_find(SPAN("client|KILL"))->name, "client|kill");
    ck_assert_str_eq(command_find_sub(command_find(SPAN("client")), SPAN("KILL"))->name,
                     "client|kill");
    ck_assert_ptr_null(command_find(SPAN("")));
    ck_assert_ptr_null(command_find(SPAN("loc")));
    ck_assert_ptr_null(command_find(span_of("lock\0", 5)));
    ck_assert_ptr_null(command_find(SPAN("locklocklocklocklocklocklocklocklocklock")));
    ck_assert_ptr_null(command_find_sub(command_find(SPAN("client")), SPAN("lock")));
}

START_TEST(subcommands_stand_behind_their_container)
{
    size_t count;
    const struct command *subs = command_subs(command_find(SPAN("config")), &count);

    ck_assert_uint_eq(count, 5);
    ck_assert_str_eq(subs[0].name, "config|get");
    ck_assert_str_eq(command_short_name(&subs[0]), "get");
    (void)command_subs(command_find(SPAN("lock")), &count);
    ck_assert_uint_eq(count, 0);
}

/* The option words of a usage line are those that the arguments' parser takes. */
static const struct {
    const char *command;
    const struct lock_syntax *syntax;
} SYNTAXES[] = {
    { "lock", &SYNTAX_LOCK },         { "unlock", &SYNTAX_UNLOCK },
    { "renew", &SYNTAX_RENEW },       { "cancel", &SYNTAX_CANCEL },
    { "lockinfo", &SYNTAX_LOCKINFO }, { "forceunlock", &SYNTAX_FORCEUNLOCK },
    { "locks", &SYNTAX_LOCKS },       { "waiters", &SYNTAX_WAITERS },
    { "mlock", &SYNTAX_MLOCK },
};

static bool usage_has(const char *usage, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = usage; (at = strstr(at, word)) != NULL; at += len) {
        if ((at == usage || !isupper((unsigned char)at[-1])) &&
            !isupper((unsigned char)at[len])) {
            return true;
        }
    }
    return false;
}

START_TEST(usage_and_parser_know_the_same_options, TEST_ROWS(SYNTAXES))
{
    static const char *const WORDS[] = {
#define TERM(word, ...) #word,
#define OPTION(word, ...) #word,
#include "latchd/terms.def"
    };
    const struct command *c = command_find(span_str(SYNTAXES[_i].command));
    unsigned bits = 0;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        bits |= usage_has(c->usage, WORDS[i]) ? 1U << i : 0U;
    }
    ck_assert_msg(bits == lock_syntax_options(SYNTAXES[_i].syntax), "%s", c->usage);
}
