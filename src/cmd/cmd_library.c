/* SET, SETNX, GET, EXISTS, TTL, PTTL, DEL, UNLINK, EXPIRE and the like: what lock
 * libraries send to a Redis. */

#include "cmd/cmd_priv.h"
#include "lockscript/lock_script.h"

/* Whether lock libraries are served. False: an error reply was written. */
static bool ctx_serves_libraries(struct command_ctx *ctx)
{
    if (!ctx->cmd->limits.lock_libraries) {
        ctx_only_redis(ctx, redis_only_advice(ctx->argv[0]));
    }
    return ctx->cmd->limits.lock_libraries;
}

static enum plain_set plain_set_of(const struct command_ctx *ctx)
{
    const struct multi *multi = ctx->client->multi;
    struct watch *watch = multi_is_running(multi) ? multi_watch(multi) : NULL;

    return watch != NULL && ctx->argc > 2 && ctx_arg_is(ctx, 0, "SET")
               ? watch_plain_set(watch, ctx->argv[1], ctx->argv[2])
               : PLAIN_SET_REFUSED;
}

void cmd_library(struct command_ctx *ctx)
{
    char text[LIBRARY_ERROR_ROOM];
    struct lock_call call;

    if (!ctx_serves_libraries(ctx)) {
        return;
    }
    if (!library_args_parse(ctx->argv, ctx->argc, plain_set_of(ctx), &call, text)) {
        ctx_refuse(ctx, LATCHD_ERR, "%s", text);
        return;
    }
    library_begin(ctx, &call);
}

/* Some libraries read a key of their own when they connect, whatever the server is. */
void cmd_get(struct command_ctx *ctx)
{
    if (ctx->cmd->limits.lock_libraries) {
        cmd_library(ctx);
    } else {
        ctx_null(ctx);
    }
}

void cmd_exists(struct command_ctx *ctx)
{
    if (ctx->cmd->limits.lock_libraries) {
        cmd_library(ctx);
    } else {
        resp_int(ctx->out, 0);
    }
}

/* EVAL, EVALSHA, SCRIPT: the scripts of lock libraries. A script is read, not run: what
 * it does to locks is done instead (lockscript/lock_script.h). */

/* The keys and the arguments of EVAL and EVALSHA. */
struct script_words {
    const struct span *keys;
    size_t key_count;
    const struct span *args;
    size_t arg_count;
};

/* False: an error reply was written. */
static bool read_words(struct command_ctx *ctx, struct script_words *ret)
{
    size_t first, count;
    int64_t number;

    if (!command_key_range(ctx->command, ctx->argv, ctx->argc, &first, &count)) {
        if (ctx_arg_int(ctx, 2, &number)) {
            ctx_error(ctx, LATCHD_ERR,
                      number < 0
                          ? "Number of keys can't be negative"
                          : "Number of keys can't be greater than number of args");
        }
        return false;
    }
    *ret = (struct script_words){
        .keys = ctx->argv + first,
        .key_count = count,
        .args = ctx->argv + first + count,
        .arg_count = ctx->argc - first - count,
    };
    return true;
}

static void refuse_script(struct command_ctx *ctx, const struct lock_script_error *why)
{
    ctx_refuse(
        ctx, LATCHD_ERR,
        "latchd keeps locks, not data: this script is no lock operation that "
        "latchd knows (line %u: %s); a library that brings its own scripts, such "
        "as Redisson, is to connect to the Redis that keeps the locks",
        why->line, why->why);
}

/* Redis lets a script change any key. Where latchd leaves a lock alone, none of the
 * script's own replies would be true. */
static void refuse_others(struct lock_call *call)
{
    if (call->compare == LOCK_COMPARE_NONE && !lock_call_takes(call->kind) &&
        !lock_call_is_query(call->kind)) {
        call->replies[LOCK_KEY_OTHERS] = (struct lock_reply){
            .kind = LOCK_REPLY_PLAIN_ERROR,
            .text = SPAN("nothing was done: another client holds the lock, and the "
                         "script does not compare the lock's value"),
        };
    }
}

static void run_script(struct command_ctx *ctx, const struct lock_script *script)
{
    struct lock_script_error why;
    struct script_words words;
    struct lock_call call;

    if (!read_words(ctx, &words)) {
        return;
    }
    if (!lock_script_bind(script, words.keys, words.key_count, words.args,
                          words.arg_count, &call, &why)) {
        ctx_refuse(ctx, LATCHD_ERR, "this script cannot be run so: %s", why.why);
        return;
    }
    if (!ctx_has_database(ctx, call.database)) {
        return;
    }
    refuse_others(&call);
    library_begin(ctx, &call);
}

/* Loads the script of a text. NULL: an error reply was written. */
static const struct lock_script *load_script(struct command_ctx *ctx, struct span text,
                                             char sha1[SHA1_HEX_LEN + 1])
{
    const struct acl_user *user = ctx->client->user;
    const struct lock_script *script = NULL;
    struct lock_script_error why;

    if (ctx->cmd->scripts == NULL) {
        ctx->cmd->scripts = lock_script_cache_new();
    }
    switch (lock_script_cache_load(
        ctx->cmd->scripts, span_of(user->name, user->name_len), text,
        ctx->cmd->env.now_ms(ctx->cmd->env.ctx), sha1, &script, &why)) {
    case LOCK_SCRIPT_LOADED:
        return script;
    case LOCK_SCRIPT_REFUSED:
        refuse_script(ctx, &why);
        break;
    case LOCK_SCRIPT_TOO_MANY:
        ctx_error(ctx, LATCHD_ERR_LIMIT, "too many new scripts of this user at a time");
        break;
    }
    return NULL;
}

static const struct lock_script *find_script(struct cmd *c, struct span sha1)
{
    return c->scripts == NULL ? lock_script_known(sha1)
                              : lock_script_cache_find(c->scripts, sha1);
}

void cmd_eval(struct command_ctx *ctx)
{
    const struct lock_script *script;
    char sha1[SHA1_HEX_LEN + 1];

    if (!ctx_serves_libraries(ctx)) {
        return;
    }
    script = load_script(ctx, ctx->argv[1], sha1);
    if (script != NULL) {
        run_script(ctx, script);
    }
}

void cmd_evalsha(struct command_ctx *ctx)
{
    const struct lock_script *script;

    if (!ctx_serves_libraries(ctx)) {
        return;
    }
    script = find_script(ctx->cmd, ctx->argv[1]);
    if (script == NULL) {
        ctx_error(ctx, LATCHD_ERR_NOSCRIPT, "No matching script. Please use EVAL.");
        return;
    }
    run_script(ctx, script);
}

void cmd_script_load(struct command_ctx *ctx)
{
    char sha1[SHA1_HEX_LEN + 1];

    if (ctx_serves_libraries(ctx) && load_script(ctx, ctx->argv[2], sha1) != NULL) {
        resp_bulk_str(ctx->out, sha1);
    }
}

void cmd_script_exists(struct command_ctx *ctx)
{
    if (!ctx_serves_libraries(ctx)) {
        return;
    }
    resp_array(ctx->out, ctx->argc - 2);
    for (size_t i = 2; i < ctx->argc; i++) {
        resp_int(ctx->out, find_script(ctx->cmd, ctx->argv[i]) != NULL ? 1 : 0);
    }
}

void cmd_script_flush(struct command_ctx *ctx)
{
    if (!ctx_serves_libraries(ctx)) {
        return;
    }
    if (ctx->argc > 3 || (ctx->argc == 3 && !ctx_arg_is(ctx, 2, "SYNC") &&
                          !ctx_arg_is(ctx, 2, "ASYNC"))) {
        ctx_error(ctx, LATCHD_ERR, "SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    if (ctx->cmd->scripts != NULL) {
        lock_script_cache_flush(ctx->cmd->scripts);
    }
    resp_simple(ctx->out, "OK");
}
