/* lock_script_print FILE...: reads each file as a script, and prints the lock_script
 * that it is as C, for src/lockscript/known_scripts.inc; the name of the file, its
 * SHA1, is the key. A script that is refused is a comment, and the exit code is 1. */
#include "lockscript/lock_plan.h"
#include "util/buf.h"
#include "util/text.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME(x) [x] = #x

static const char *const KINDS[] = {
    NAME(LOCK_CALL_ACQUIRE),   NAME(LOCK_CALL_ACQUIRE_OR_EXTEND),
    NAME(LOCK_CALL_EXTEND),    NAME(LOCK_CALL_OVERWRITE),
    NAME(LOCK_CALL_RELEASE),   NAME(LOCK_CALL_FORCE_RELEASE),
    NAME(LOCK_CALL_GET_VALUE), NAME(LOCK_CALL_GET_TTL),
    NAME(LOCK_CALL_EXISTS),
};
static const char *const SCOPES[] = { NAME(LOCK_CALL_ALL_OR_NONE),
                                      NAME(LOCK_CALL_EACH_KEY) };
static const char *const COMPARES[] = { NAME(LOCK_COMPARE_NONE),
                                        NAME(LOCK_COMPARE_VALUE),
                                        NAME(LOCK_COMPARE_PREFIX) };
static const char *const ENDLESS[] = { NAME(LOCK_ENDLESS_GETS_END),
                                       NAME(LOCK_ENDLESS_REFUSED) };
static const char *const ENDS[] = { NAME(LOCK_END_NONE), NAME(LOCK_END_IN),
                                    NAME(LOCK_END_AT), NAME(LOCK_END_ADDED) };
static const char *const UNITS[] = { NAME(LOCK_UNIT_MS), NAME(LOCK_UNIT_S) };
static const char *const COMMANDS[] = { NAME(LOCK_END_BY_SET),
                                        NAME(LOCK_END_BY_EXPIRE) };
static const char *const SOURCES[] = { NAME(LOCK_OPERAND_NONE), NAME(LOCK_OPERAND_KEY),
                                       NAME(LOCK_OPERAND_ARG), NAME(LOCK_OPERAND_TEXT),
                                       NAME(LOCK_OPERAND_NUMBER) };
static const char *const STATES[] = {
    NAME(LOCK_KEY_FREE),   NAME(LOCK_KEY_MINE),         NAME(LOCK_KEY_MINE_ENDLESS),
    NAME(LOCK_KEY_OTHERS), NAME(LOCK_KEY_NOT_A_STRING),
};
static const char *const REPLIES[] = {
    NAME(LOCK_REPLY_NULL),       NAME(LOCK_REPLY_INTEGER),
    NAME(LOCK_REPLY_STATUS),     NAME(LOCK_REPLY_BULK),
    NAME(LOCK_REPLY_ERROR),      NAME(LOCK_REPLY_PLAIN_ERROR),
    NAME(LOCK_REPLY_WRONG_TYPE), NAME(LOCK_REPLY_KEY_COUNT),
    NAME(LOCK_REPLY_DONE_COUNT), NAME(LOCK_REPLY_VALUE),
    NAME(LOCK_REPLY_TTL_MS),     NAME(LOCK_REPLY_TTL_S),
    NAME(LOCK_REPLY_LIST),
};

static void print_text(struct span text)
{
    struct buf out = { 0 };

    if (text.ptr != NULL) {
        repr_add(&out, text);
        (void)printf(", .text = SPAN(%.*s)", (int)buf_len(&out), buf_ptr(&out));
    }
    buf_reset(&out);
}

static void print_operand(const char *field, const struct lock_operand *o)
{
    if (o->source == LOCK_OPERAND_NONE) {
        return;
    }
    (void)printf("      .%s = { .source = %s", field, SOURCES[o->source]);
    if (o->source == LOCK_OPERAND_NUMBER) {
        (void)printf(", .number = %lld", (long long)o->number);
    } else if (o->source != LOCK_OPERAND_TEXT) {
        (void)printf(", .index = %u", o->index);
    }
    print_text(o->text);
    (void)printf(" },\n");
}

static void print_end(const struct lock_end_plan *end)
{
    if (end->end == LOCK_END_NONE) {
        return;
    }
    (void)printf("      .end.end = %s, .end.unit = %s, .end.command = %s,\n",
                 ENDS[end->end], UNITS[end->unit], COMMANDS[end->command]);
    print_operand("end.time", &end->time);
}

static void print_scalar(const struct lock_reply *r)
{
    (void)printf("{ .kind = %s", REPLIES[r->kind]);
    if (r->kind == LOCK_REPLY_INTEGER) {
        (void)printf(", .integer = %lld", (long long)r->integer);
    }
    print_text(r->text);
}

static void print_reply(int state, const struct lock_reply *r)
{
    (void)printf("      .replies[%s] = ", STATES[state]);
    print_scalar(r);
    if (r->kind == LOCK_REPLY_LIST) {
        (void)printf(", .item_count = %u, .items = { ", r->item_count);
        for (unsigned i = 0; i < r->item_count; i++) {
            struct lock_reply item = lock_reply_item_at(r, i);

            print_scalar(&item);
            (void)printf(" }, ");
        }
        (void)printf("}");
    }
    (void)printf(" },\n");
}

static void print_plan(unsigned variant, const struct lock_plan *p)
{
    if (p->kind == LOCK_CALL_KINDS) {
        (void)printf("    .plans[%u].kind = LOCK_CALL_KINDS,\n", variant);
        return;
    }
    (void)printf("    .plans[%u] = {\n      .kind = %s, .scope = %s, .compare = %s,\n",
                 variant, KINDS[p->kind], SCOPES[p->scope], COMPARES[p->compare]);
    (void)printf("      .endless = %s, .value_arg = %u,\n", ENDLESS[p->endless],
                 p->value_arg);
    print_operand("prefix_len", &p->prefix_len);
    print_end(&p->end);
    print_operand("channel", &p->channel);
    print_operand("message", &p->message);
    print_operand("database", &p->database);
    for (int s = 0; s < LOCK_KEY_STATES; s++) {
        print_reply(s, &p->replies[s]);
    }
    (void)printf("    },\n");
}

static void print_script(const char *sha1, const struct lock_script *s)
{
    (void)printf("{ \"%s\", {\n    .keys_named = %u, .keys_locked = %u, "
                 ".condition_count = %u,\n",
                 sha1, s->keys_named, s->keys_locked, s->condition_count);
    for (unsigned i = 0; i < s->condition_count; i++) {
        (void)printf("    .conditions[%u] = { .arg = %u", i, s->conditions[i].arg);
        print_text(s->conditions[i].text);
        (void)printf(" },\n");
    }
    for (unsigned v = 0; v < 1U << s->condition_count; v++) {
        print_plan(v, &s->plans[v]);
    }
    (void)printf("} },\n");
}

static bool print_file(const char *path)
{
    static char text[LOCK_SCRIPT_TEXT_MAX + 1];
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    struct lock_script_error error;
    struct lock_script *script;
    FILE *f = fopen(path, "rb");
    size_t len;

    if (f == NULL) {
        perror(path);
        return false;
    }
    len = fread(text, 1, sizeof(text), f);
    (void)fclose(f);
    script = lock_script_parse(span_of(text, len), &error);
    if (script == NULL) {
        (void)printf("/* %s: line %u: %s */\n", name, error.line, error.why);
        return false;
    }
    print_script(name, script);
    lock_script_free(script);
    return true;
}

int main(int argc, char **argv)
{
    bool ok = true;

    for (int i = 1; i < argc; i++) {
        ok = print_file(argv[i]) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
