/* COMMAND: the command table in Redis's format, so that redis-cli and libraries know
 * latchd's commands. */
#include "cmd/cmd_priv.h"

/* --- INFO ------------------------------------------------------------- */

static const struct {
    unsigned bit;
    const char *name;
} FLAGS[] = {
    { CMD_WRITE, "write" },     { CMD_READONLY, "readonly" }, { CMD_ADMIN, "admin" },
    { CMD_PUBSUB, "pubsub" },   { CMD_BLOCKING, "blocking" }, { CMD_FAST, "fast" },
    { CMD_NO_AUTH, "no_auth" }, { CMD_NO_MULTI, "no_multi" },
};

enum { FLAG_COUNT = sizeof(FLAGS) / sizeof(FLAGS[0]) };

static void write_flags(struct buf *out, int proto, const struct command *c)
{
    size_t count = 0;

    for (size_t i = 0; i < FLAG_COUNT; i++) {
        count += (c->flags & FLAGS[i].bit) != 0;
    }
    resp_set(out, proto, count);
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((c->flags & FLAGS[i].bit) != 0) {
            resp_simple(out, FLAGS[i].name);
        }
    }
}

static void write_categories(struct buf *out, int proto, const struct command *c)
{
    size_t count = 0;

    for (size_t i = 0; i < ACL_CATEGORY_COUNT; i++) {
        count += (c->acl >> i) & 1U;
    }
    resp_set(out, proto, count);
    for (size_t i = 0; i < ACL_CATEGORY_COUNT; i++) {
        if (((c->acl >> i) & 1U) != 0) {
            resp_simple(out, ACL_CATEGORY_NAMES[i]);
        }
    }
}

static void write_find_range(struct buf *out, int proto, int last)
{
    resp_bulk_str(out, "range");
    resp_bulk_str(out, "spec");
    resp_map(out, proto, 3);
    resp_bulk_str(out, "lastkey");
    resp_int(out, last);
    resp_bulk_str(out, "keystep");
    resp_int(out, 1);
    resp_bulk_str(out, "limit");
    resp_int(out, 0);
}

static void write_find_counted(struct buf *out, int proto)
{
    resp_bulk_str(out, "keynum");
    resp_bulk_str(out, "spec");
    resp_map(out, proto, 3);
    resp_bulk_str(out, "keynumidx");
    resp_int(out, 0);
    resp_bulk_str(out, "firstkey");
    resp_int(out, 1);
    resp_bulk_str(out, "keystep");
    resp_int(out, 1);
}

static const char *key_flag(const struct command *c)
{
    return (c->flags & CMD_READONLY) != 0 ? "RO" : "RW";
}

static void write_key_specs(struct buf *out, int proto, const struct command *c)
{
    if (c->keys == KEYS_NONE) {
        resp_set(out, proto, 0);
        return;
    }
    resp_set(out, proto, 1);
    resp_map(out, proto, 3);
    resp_bulk_str(out, "flags");
    resp_set(out, proto, 1);
    resp_simple(out, key_flag(c));
    resp_bulk_str(out, "begin_search");
    resp_map(out, proto, 2);
    resp_bulk_str(out, "type");
    resp_bulk_str(out, "index");
    resp_bulk_str(out, "spec");
    resp_map(out, proto, 1);
    resp_bulk_str(out, "index");
    resp_int(out, c->keys == KEYS_SECOND || c->keys == KEYS_SCRIPT ? 2 : 1);
    resp_bulk_str(out, "find_keys");
    resp_map(out, proto, 2);
    resp_bulk_str(out, "type");
    if (c->keys == KEYS_COUNTED || c->keys == KEYS_SCRIPT) {
        write_find_counted(out, proto);
    } else {
        write_find_range(out, proto, c->keys == KEYS_ALL ? -1 : 0);
    }
}

static void write_info(struct buf *out, int proto, const struct command *c)
{
    int first = c->keys == KEYS_SECOND                       ? 2
                : c->keys == KEYS_ONE || c->keys == KEYS_ALL ? 1
                                                             : 0;
    size_t count;
    const struct command *subs = command_subs(c, &count);

    resp_array(out, 10);
    resp_bulk_str(out, c->name);
    resp_int(out, c->arity);
    write_flags(out, proto, c);
    resp_int(out, first);
    resp_int(out, c->keys == KEYS_ALL ? -1 : first);
    resp_int(out, first == 0 ? 0 : 1);
    write_categories(out, proto, c);
    resp_set(out, proto, 0); /* tips */
    write_key_specs(out, proto, c);
    if (count == 0) {
        resp_set(out, proto, 0);
        return;
    }
    resp_array(out, count);
    for (size_t i = 0; i < count; i++) {
        write_info(out, proto, &subs[i]);
    }
}

static size_t count_top(void)
{
    size_t count = 0;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        count += !command_is_sub(&COMMANDS[i]);
    }
    return count;
}

void cmd_command(struct command_ctx *ctx)
{
    resp_array(ctx->out, count_top());
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (!command_is_sub(&COMMANDS[i])) {
            write_info(ctx->out, ctx->proto, &COMMANDS[i]);
        }
    }
}

void cmd_command_info(struct command_ctx *ctx)
{
    if (ctx->argc == 2) {
        cmd_command(ctx);
        return;
    }
    resp_array(ctx->out, ctx->argc - 2);
    for (size_t i = 2; i < ctx->argc; i++) {
        const struct command *c = command_find(ctx->argv[i]);

        if (c == NULL) {
            resp_null(ctx->out, ctx->proto);
        } else {
            write_info(ctx->out, ctx->proto, c);
        }
    }
}

void cmd_command_count(struct command_ctx *ctx)
{
    resp_int(ctx->out, (int64_t)count_top());
}

/* --- DOCS ------------------------------------------------------------- */

/* The usage line as the only argument: redis-cli shows it as it is. */
static void write_usage(struct buf *out, int proto, const char *usage)
{
    resp_bulk_str(out, "arguments");
    resp_array(out, 1);
    resp_map(out, proto, 2);
    resp_bulk_str(out, "name");
    resp_bulk_str(out, usage);
    resp_bulk_str(out, "type");
    resp_bulk_str(out, "string");
}

static void write_docs(struct buf *out, int proto, const struct command *c)
{
    size_t count;
    const struct command *subs = command_subs(c, &count);
    bool arguments = c->usage[0] != '\0' && count == 0;

    resp_bulk_str(out, c->name);
    resp_map(out, proto, 4U + (size_t)arguments + (size_t)(count != 0));
    resp_bulk_str(out, "summary");
    resp_bulk_str(out, c->summary);
    resp_bulk_str(out, "since");
    resp_bulk_str(out, c->since);
    resp_bulk_str(out, "group");
    resp_bulk_str(out, c->group);
    resp_bulk_str(out, "complexity");
    resp_bulk_str(out, c->complexity);
    if (arguments) {
        write_usage(out, proto, c->usage);
    }
    if (count != 0) {
        resp_bulk_str(out, "subcommands");
        resp_map(out, proto, count);
        for (size_t i = 0; i < count; i++) {
            write_docs(out, proto, &subs[i]);
        }
    }
}

void cmd_command_docs(struct command_ctx *ctx)
{
    size_t found = 0;

    if (ctx->argc == 2) {
        resp_map(ctx->out, ctx->proto, count_top());
        for (size_t i = 0; i < COMMAND_COUNT; i++) {
            if (!command_is_sub(&COMMANDS[i])) {
                write_docs(ctx->out, ctx->proto, &COMMANDS[i]);
            }
        }
        return;
    }
    for (size_t i = 2; i < ctx->argc; i++) {
        found += command_find(ctx->argv[i]) != NULL;
    }
    resp_map(ctx->out, ctx->proto, found);
    for (size_t i = 2; i < ctx->argc; i++) {
        const struct command *c = command_find(ctx->argv[i]);

        if (c != NULL) {
            write_docs(ctx->out, ctx->proto, c);
        }
    }
}

/* --- LIST ------------------------------------------------------------- */

static bool in_category(const struct command *c, struct span category)
{
    for (size_t i = 0; i < ACL_CATEGORY_COUNT; i++) {
        if (((c->acl >> i) & 1U) != 0 &&
            span_eq_nocase(category, span_str(ACL_CATEGORY_NAMES[i] + 1))) {
            return true;
        }
    }
    return false;
}

void cmd_command_list(struct command_ctx *ctx)
{
    struct buf names = { 0 };
    bool by_pattern = ctx_arg_is(ctx, 3, "PATTERN");
    bool by_category = ctx_arg_is(ctx, 3, "ACLCAT");
    size_t count = 0;

    if (ctx->argc != 2 &&
        (ctx->argc != 5 || !ctx_arg_is(ctx, 2, "FILTERBY") ||
         (!by_pattern && !by_category && !ctx_arg_is(ctx, 3, "MODULE")))) {
        ctx_syntax_error(ctx);
        return;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (ctx->argc == 2 ||
            (by_category && in_category(&COMMANDS[i], ctx->argv[4])) ||
            (by_pattern && ctx->argv[4].len <= LATCHD_PATTERN_MAX &&
             glob_match(ctx->argv[4], span_str(COMMANDS[i].name)))) {
            resp_bulk_str(&names, COMMANDS[i].name);
            count++;
        }
    }
    resp_array(ctx->out, count);
    buf_add_span(ctx->out, buf_span(&names));
    buf_reset(&names);
}

/* --- GETKEYS ---------------------------------------------------------- */

static void get_keys(struct command_ctx *ctx, bool flags)
{
    const struct span *argv = ctx->argv + 2;
    size_t argc = ctx->argc - 2, first, count;
    const struct command *c = command_resolve(argv, argc);

    if (c == NULL) {
        ctx_error(ctx, LATCHD_ERR, "Invalid command specified");
    } else if (c->keys == KEYS_NONE) {
        ctx_error(ctx, LATCHD_ERR, "The command has no key arguments");
    } else if (!command_arity_fits(c, argc)) {
        ctx_error(ctx, LATCHD_ERR, "Invalid number of arguments specified for command");
    } else if (!command_key_range(c, argv, argc, &first, &count)) {
        ctx_error(ctx, LATCHD_ERR, "Invalid arguments specified for command");
    } else {
        resp_array(ctx->out, count);
        for (size_t i = 0; i < count; i++) {
            if (flags) {
                resp_array(ctx->out, 2);
            }
            resp_bulk(ctx->out, argv[first + i]);
            if (flags) {
                resp_set(ctx->out, ctx->proto, 1);
                resp_simple(ctx->out, key_flag(c));
            }
        }
    }
}

void cmd_command_getkeys(struct command_ctx *ctx)
{
    get_keys(ctx, false);
}

void cmd_command_getkeysandflags(struct command_ctx *ctx)
{
    get_keys(ctx, true);
}
