#include "cmd/library/library_call.h"

#include "cmd/handlers.h"
#include "cmd/library/library_publish.h"
#include "cmd/library/library_reply.h"
#include "cmd/library/value_text.h"
#include "util/alloc.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdlib.h>

void library_call_free(struct library_call *lib)
{
    if (lib != NULL) {
        buf_reset(&lib->value);
        buf_reset(&lib->pattern);
        buf_reset(&lib->held);
        free(lib);
    }
}

/* --- the copy that waits ------------------------------------------------ */

static size_t reply_bytes(const struct lock_call *call)
{
    size_t bytes = 0;

    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        const struct lock_reply *r = &call->replies[i];

        bytes += r->text.len;
        for (unsigned k = 0; k < r->item_count; k++) {
            bytes += r->items[k].text.len;
        }
    }
    return bytes;
}

static void copy_reply(struct lock_reply *r, char **at)
{
    r->text = span_put(at, r->text);
    for (unsigned i = 0; i < r->item_count; i++) {
        r->items[i].text = span_put(at, r->items[i].text);
    }
}

static bool has_key(const struct library_call *lib, struct span key)
{
    for (size_t i = 0; i < lib->key_count; i++) {
        if (span_eq(lib->keys[i], key)) {
            return true;
        }
    }
    return false;
}

/* Of several that are all or none, the same key counts once. */
static void copy_keys(struct library_call *lib, const struct lock_call *call, char **at)
{
    bool each = call->scope == LOCK_CALL_EACH_KEY;

    for (size_t i = 0; i < call->key_count; i++) {
        if (each || !has_key(lib, call->keys[i])) {
            lib->keys[lib->key_count++] = span_put(at, call->keys[i]);
        }
    }
}

static struct library_call *copy_call(const struct lock_call *call)
{
    size_t bytes = reply_bytes(call) + call->value.len + call->publish.channel.len +
                   call->publish.message.len;
    struct library_call *lib;
    char *at;

    for (size_t i = 0; i < call->key_count; i++) {
        bytes += call->keys[i].len;
    }
    lib = xcalloc(1, sizeof(*lib) + call->key_count * sizeof(struct span) + bytes);
    at = (char *)&lib->keys[call->key_count];
    lib->call = *call;
    copy_keys(lib, call, &at);
    lib->call.keys = lib->keys;
    lib->call.value = span_put(&at, call->value);
    lib->call.publish.channel = span_put(&at, call->publish.channel);
    lib->call.publish.message = span_put(&at, call->publish.message);
    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        copy_reply(&lib->call.replies[i], &at);
    }
    return lib;
}

/* The texts by which the engine knows the value: to take it, and to find it. */
static void make_texts(struct library_call *lib, const struct command_ctx *ctx)
{
    const struct lock_call *call = &lib->call;
    const struct watched_key *watched = library_watched(lib);
    const struct acl_user *user = ctx->client->user;
    struct span value = call->value;

    if (watched != NULL && watched->state == WATCH_VALUE_HOLD) {
        buf_add_span(&lib->pattern, buf_span(&watched->holder));
        return;
    }
    value_add_origin(&lib->value, span_of(user->name, user->name_len));
    if (call->compare == LOCK_COMPARE_NONE && !lib->overrides) {
        buf_add_span(&lib->pattern, buf_span(&lib->value));
    } else {
        buf_add_str(&lib->pattern, "*");
    }
    buf_add_str(&lib->value, ":");
    buf_add_str(&lib->pattern, ":");
    value_escape(&lib->value, value);
    if (call->compare == LOCK_COMPARE_NONE) {
        buf_add_str(&lib->pattern, "*");
    } else if (call->compare == LOCK_COMPARE_PREFIX && call->prefix_len <= value.len) {
        value_escape(&lib->pattern, span_of(value.ptr, call->prefix_len));
        buf_add_str(&lib->pattern, "*");
    } else {
        value_escape(&lib->pattern, value);
    }
}

/* --- what it comes to --------------------------------------------------- */

/* The lease to ask for, as far as it is known before; 0 and less: it is over. */
static int64_t lease_of(const struct cmd *c, const struct lock_call *call)
{
    switch (call->end) {
    case LOCK_END_NONE:
        return (int64_t)c->limits.endless_lease_ms;
    case LOCK_END_AT:
        return call->end_ms - (int64_t)(clock_wall_us() / 1000);
    case LOCK_END_IN:
    case LOCK_END_ADDED:
        break;
    }
    return call->end_ms;
}

bool library_is_endless(const struct library_call *lib)
{
    return lib->call.end == LOCK_END_NONE;
}

bool library_must_check(const struct library_call *lib)
{
    const struct lock_call *call = &lib->call;

    if (call->scope == LOCK_CALL_EACH_KEY) {
        return false;
    }
    return lib->key_count > 1 || call->end == LOCK_END_ADDED ||
           call->endless == LOCK_ENDLESS_REFUSED ||
           !lock_reply_eq(&call->replies[LOCK_KEY_MINE],
                          &call->replies[LOCK_KEY_MINE_ENDLESS]);
}

static enum library_phase first_phase(const struct library_call *lib)
{
    if (library_next_compared(lib, 0) != NULL) {
        return LIBRARY_COMPARES;
    }
    if (lock_call_is_query(lib->call.kind)) {
        return LIBRARY_QUERIES;
    }
    if (lock_call_takes(lib->call.kind)) {
        return LIBRARY_TAKES;
    }
    return library_must_check(lib) ? LIBRARY_CHECKS : library_acts(lib);
}

const struct watched_key *library_watched(const struct library_call *lib)
{
    return lib->watch == NULL ? NULL : watch_find(lib->watch, lib->keys[0]);
}

const struct watched_key *library_next_compared(const struct library_call *lib,
                                                size_t at)
{
    const struct watched_key *acted_on = library_watched(lib);

    for (; lib->watch != NULL && at < lib->watch->count; at++) {
        const struct watched_key *key = &lib->watch->keys[at];

        if (key != acted_on || key->state != WATCH_VALUE_HOLD) {
            return key;
        }
    }
    return NULL;
}

enum library_phase library_acts(const struct library_call *lib)
{
    bool releases = lib->call.kind == LOCK_CALL_RELEASE ||
                    lib->call.kind == LOCK_CALL_FORCE_RELEASE || lib->lease_ms <= 0;

    return releases ? LIBRARY_RELEASES : LIBRARY_EXTENDS;
}

/* --- requests ----------------------------------------------------------- */

static void ask_to_take(struct cmd *c, struct library_call *lib)
{
    struct lock_req req = {
        .from = lib->from,
        .kind = KIND_PLAIN,
        .name = lib->keys[0],
        .value = buf_span(&lib->value),
        .has = LOCK_HAS_WAIT |
               (library_is_endless(lib) ? LOCK_IS_ENDLESS : LOCK_HAS_LEASE),
        .wait_ms = lib->park_ms,
        .polls_since = lib->park_ms > 0 ? lib->asks_since_ms : 0,
        .lease_ms = (uint64_t)lib->lease_ms,
        .user = lib->user,
    };

    if (lib->key_count > 1) {
        struct mlock_req many = { req, lib->keys, lib->key_count };

        engine_mlock(c->env.engine, &many);
    } else {
        engine_lock(c->env.engine, &req);
    }
}

void library_ask(struct cmd *c, struct library_call *lib)
{
    const struct watched_key *watched = library_watched(lib);
    struct hold_req req = {
        .from = lib->from,
        .kind = KIND_PLAIN,
        .name = lib->phase == LIBRARY_COMPARES
                    ? watched_name(&lib->watch->keys[lib->key])
                    : lib->keys[lib->key],
        .value = buf_span(&lib->pattern),
        .token = watched == NULL ? 0 : watched->token,
        .user = lib->user,
        .overrides = lib->overrides,
    };

    switch (lib->phase) {
    case LIBRARY_REMEMBERS:
    case LIBRARY_COMPARES:
    case LIBRARY_QUERIES:
    case LIBRARY_CHECKS:
    case LIBRARY_EXPLAINS:
        engine_lock_info(c->env.engine, lib->from, req.name);
        break;
    case LIBRARY_TAKES:
        ask_to_take(c, lib);
        break;
    case LIBRARY_EXTENDS:
        req.lease_ms = (uint64_t)lib->lease_ms;
        req.endless = library_is_endless(lib);
        engine_renew(c->env.engine, &req);
        break;
    case LIBRARY_RELEASES:
        engine_unlock(c->env.engine, &req);
        break;
    case LIBRARY_DONE:
        break;
    }
}

/* --- the command -------------------------------------------------------- */

static const struct lock_syntax SYNTAX_KEY = { "", 0, RULE_NAME | RULE_TAKES };

/* Whether all keys may be names of locks. False: an error was written, or for who only
 * looks the reply that nothing is there. */
static bool check_keys(struct command_ctx *ctx, struct library_call *lib)
{
    char text[ARGS_ERROR_ROOM];
    struct lock_args args;

    if (lib->key_count > LATCHD_MLOCK_MAX ||
        (lib->key_count > 1 && lib->call.kind == LOCK_CALL_ACQUIRE_OR_EXTEND)) {
        ctx_error(ctx, LATCHD_ERR, "so many keys at once are not served");
        return false;
    }
    for (size_t i = 0; i < lib->key_count; i++) {
        if (lock_args_parse(&SYNTAX_KEY, &ctx->cmd->limits, &lib->keys[i], 1, &args,
                            text)) {
            continue;
        }
        if (lock_call_is_query(lib->call.kind)) {
            struct effect_reply nothing = { .kind = REPLY_NULL };

            library_write(ctx->out, ctx->proto, lib, &nothing);
        } else {
            ctx_error(ctx, LATCHD_ERR, "%s", text);
        }
        return false;
    }
    return true;
}

static bool check_value(struct command_ctx *ctx, const struct lock_call *call)
{
    if (call->value.len > VALUE_MAX) {
        ctx_error(ctx, LATCHD_ERR, "the value of a lock must be at most %d bytes",
                  VALUE_MAX);
        return false;
    }
    if (lock_call_takes(call->kind) &&
        span_starts(call->value, SPAN(LATCHD_RESERVED_OWNER_PREFIX))) {
        ctx_error(ctx, LATCHD_ERR, "the value of a lock must not begin with '%s'",
                  LATCHD_RESERVED_OWNER_PREFIX);
        return false;
    }
    return true;
}

static bool check_lease(struct command_ctx *ctx, const struct library_call *lib)
{
    uint64_t most = ctx->cmd->limits.max_lease_ms;

    if (lib->call.end != LOCK_END_NONE && lib->lease_ms > 0 &&
        (uint64_t)lib->lease_ms > most) {
        ctx_error(ctx, LATCHD_ERR, LIBRARY_LEASE_TOO_LONG, most);
        return false;
    }
    return true;
}

static void begin_call(struct command_ctx *ctx, struct library_call *lib)
{
    ctx->library = lib;
    lib->from = ctx_wait(ctx);
    library_ask(ctx->cmd, lib);
}

void library_begin(struct command_ctx *ctx, const struct lock_call *call)
{
    struct library_call *lib = copy_call(call);

    lib->user = ctx->client->user->id;
    lib->overrides = ctx_overrides(ctx);
    lib->lease_ms = lease_of(ctx->cmd, call);
    lib->first = LOCK_KEY_MINE;
    lib->watch =
        multi_is_running(ctx->client->multi) ? multi_watch(ctx->client->multi) : NULL;
    lib->phase = first_phase(lib);
    if (lib->phase == LIBRARY_COMPARES) {
        lib->key = (size_t)(library_next_compared(lib, 0) - lib->watch->keys);
    }
    if (!check_value(ctx, call) || !check_keys(ctx, lib) || !check_lease(ctx, lib)) {
        library_call_free(lib);
        return;
    }
    if (lock_call_takes(call->kind) && lib->lease_ms <= 0) {
        /* Redis would say OK, and keep nothing: nobody is told of such a lock. */
        struct effect_reply in_vain = { .kind = REPLY_NULL };

        library_end_in_vain(lib);
        library_write(ctx->out, ctx->proto, lib, &in_vain);
        library_call_free(lib);
        return;
    }
    make_texts(lib, ctx);
    library_check_publish(ctx, lib);
    library_choose_park(ctx, lib);
    begin_call(ctx, lib);
}

void library_begin_watch(struct command_ctx *ctx, const struct span *keys,
                         size_t key_count)
{
    struct lock_call call = { .kind = LOCK_CALL_EXISTS,
                              .scope = LOCK_CALL_EACH_KEY,
                              .keys = keys,
                              .key_count = key_count };
    struct library_call *lib;

    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        call.replies[i] =
            (struct lock_reply){ .kind = LOCK_REPLY_STATUS, .text = SPAN("OK") };
    }
    lib = copy_call(&call);
    lib->phase = LIBRARY_REMEMBERS;
    lib->watch = multi_watch(ctx->client->multi);
    if (check_keys(ctx, lib)) {
        begin_call(ctx, lib);
    } else {
        library_call_free(lib);
    }
}
