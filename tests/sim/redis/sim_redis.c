#include "sim/redis/sim_redis.h"

#include "backend/redis/redis_command.h"
#include "sim/redis/lua_host.h"
#include "util/alloc.h"

#include <stdlib.h>

static void publish(void *ctx, struct span channel, struct span payload);
static int64_t count_subscribers(void *ctx, struct span channel);

void sim_redis_init(struct sim_redis *r)
{
    memset(r, 0, sizeof(*r));
    r->keys.hooks = (struct keyspace_hooks){ r, publish, count_subscribers };
}

void sim_redis_fini(struct sim_redis *r)
{
    for (size_t i = 0; i < r->name_count; i++) {
        redis_name_fini(&r->names[i]);
    }
    r->name_count = 0;
    keyspace_fini(&r->keys);
}

/* --- messages ------------------------------------------------------------- */

/* The subject of a channel. False: no name of this world. */
static bool find_channel(struct sim_redis *r, struct span channel,
                         struct redis_message *ret)
{
    enum lock_class lock_class;
    struct span rest;

    if (!channel_split(channel, &lock_class, &rest)) {
        return false;
    }
    for (size_t i = 0; i < r->name_count; i++) {
        struct redis_name *n = &r->names[i];
        struct span braced = rtext_span(&n->braced);

        if (!span_starts(rest, braced)) {
            continue;
        }
        *ret = (struct redis_message){ .name = n, .lock_class = lock_class };
        if (rest.len > braced.len && rest.ptr[braced.len] == ':') {
            ret->member = span_after(rest, braced.len + 1);
        }
        if (rest.len == braced.len || ret->member.len > 0) {
            return true;
        }
    }
    return false;
}

static void publish(void *ctx, struct span channel, struct span payload)
{
    struct sim_redis *r = ctx;
    struct redis_message m;

    if (payload.len != 1 || !find_channel(r, channel, &m) ||
        r->message_count == REDIS_MESSAGES_MAX) {
        abort();
    }
    m.payload = payload.ptr[0];
    r->members[r->message_count] = rtext_of(m.member);
    m.member = rtext_span(&r->members[r->message_count]);
    r->messages[r->message_count++] = m;
}

static int64_t count_subscribers(void *ctx, struct span channel)
{
    struct redis_message m;
    int64_t count;

    if (!find_channel(ctx, channel, &m) || m.member.len > 0) {
        return 0;
    }
    count = m.name->foreign_subscribers[m.lock_class];
    for (size_t i = 0; i < REDIS_DAEMONS_MAX; i++) {
        count += m.name->subscribed[m.lock_class][i] ? 1 : 0;
    }
    return count;
}

void redis_add_subscriber(struct sim_redis *r, size_t daemon, const char *instance)
{
    memcpy(r->patterns[daemon], instance, sizeof(r->patterns[daemon]));
}

void redis_drop_subscriber(struct sim_redis *r, size_t daemon)
{
    r->patterns[daemon][0] = '\0';
    for (size_t i = 0; i < r->name_count; i++) {
        for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
            r->names[i].subscribed[lock_class][daemon] = false;
        }
    }
}

bool redis_hears(const struct sim_redis *r, size_t daemon,
                 const struct redis_message *m)
{
    if (m->member.len == 0) {
        return m->name->subscribed[m->lock_class][daemon];
    }
    return r->patterns[daemon][0] != '\0' &&
           redis_member_of(m->member, r->patterns[daemon]);
}

/* --- a script ------------------------------------------------------------- */

uint64_t sim_redis_us(const struct sim_redis *r, uint64_t ms)
{
    return ms * 1000 + (r->now_ms == ms ? r->us : 0);
}

struct keyspace *redis_begin(struct sim_redis *r)
{
    r->us += r->us < 999 ? 1 : 0;
    r->keys.now_ms = r->now_ms;
    r->keys.us = r->us;
    if (keyspace_sweep(&r->keys)) {
        redis_read_all(r);
    }
    return &r->keys;
}

void redis_end(struct sim_redis *r)
{
    for (size_t i = 0; i < r->message_count; i++) {
        redis_read_name(r->messages[i].name);
        if (r->hooks.published != NULL) {
            r->hooks.published(r->hooks.ctx, &r->messages[i]);
        }
    }
    r->message_count = 0;
}

static void touch_names(struct sim_redis *r, const struct op *op)
{
    size_t count = op_item_count(op);

    for (size_t i = 0; i < (count == 0 ? 1 : count); i++) {
        redis_find_name(r, op_name_at(op, i))->stale = true;
    }
}

void sim_redis_run(struct sim_redis *r, const char *instance, const struct op *op,
                   struct redis_times times, struct redis_reply *ret)
{
    static struct buf call;
    const struct op_times sent = { times.asked_us, times.deadline_us, PUBLISH_PLAIN };

    r->scripts++;
    r->acquires += op->kind == OP_ACQUIRE ? 1 : 0;
    r->releases += op->kind == OP_RELEASE ? 1 : 0;
    if (op->name.len > 0) {
        (void)redis_find_name(r, op->name);
    }
    buf_clear(&call);
    script_call(&call, op, 1, instance, sent);
    ret->raw = lua_host_call(redis_begin(r), buf_span(&call));
    script_reply(ret->raw, op->kind, op_item_count(op), &ret->script);
    ret->result = ret->script.result;
    ret->result.id = op->id;
    touch_names(r, op);
    redis_end(r);
}

void redis_reply_fini(struct redis_reply *reply)
{
    script_result_fini(&reply->script);
    free(reply->raw);
    reply->raw = NULL;
}

/* --- what others do ------------------------------------------------------- */

void sim_redis_command(struct sim_redis *r, size_t argc, const struct span *argv)
{
    if (keyspace_call(redis_begin(r), argc, argv).type == KEY_REPLY_ERROR) {
        abort();
    }
    redis_read_all(r);
    redis_end(r);
}

static void del(struct sim_redis *r, struct span key)
{
    sim_redis_command(r, 2, (const struct span[]){ SPAN("DEL"), key });
}

static void del_beside(struct redis_name *n, const char *prefix)
{
    struct rtext key = redis_key(n, prefix, "");

    del(n->redis, rtext_span(&key));
}

void redis_del_queue(struct redis_name *n)
{
    del_beside(n, "redisson_lock_queue:");
}

void redis_del_scores(struct redis_name *n)
{
    del_beside(n, "redisson_lock_timeout:");
}

/* latchd's helper keys stay: an operator deletes what he sees. */
void redis_operator_del(struct redis_name *n)
{
    del(n->redis, rtext_span(&n->name));
}

void redis_flushall(struct sim_redis *r)
{
    sim_redis_command(r, 1, (const struct span[]){ SPAN("FLUSHALL") });
}

void redis_publish(struct sim_redis *r, struct redis_name *n)
{
    struct rtext key = redis_key(n, channel_prefix(CLASS_PLAIN).ptr, "");

    sim_redis_command(
        r, 3, (const struct span[]){ SPAN("PUBLISH"), rtext_span(&key), SPAN("0") });
}

bool redis_set_string(struct sim_redis *r, struct redis_name *n)
{
    if (n->is_string || n->field_count > 0) {
        return false;
    }
    sim_redis_command(
        r, 3, (const struct span[]){ SPAN("SET"), rtext_span(&n->name), SPAN("x") });
    return true;
}

void redis_del_string(struct redis_name *n)
{
    if (n->is_string) {
        del(n->redis, rtext_span(&n->name));
    }
}

void sim_redis_save(const struct sim_redis *r, struct sim_redis **copy)
{
    if (*copy == NULL) {
        *copy = xcalloc(1, sizeof(**copy));
        sim_redis_init(*copy);
    }
    for (size_t i = 0; i < r->name_count; i++) {
        (void)sim_redis_name(*copy, rtext_span(&r->names[i].name));
    }
    keyspace_copy(&(*copy)->keys, &r->keys);
    redis_read_all(*copy);
}

void sim_redis_restore(struct sim_redis *r, const struct sim_redis *copy)
{
    keyspace_copy(&r->keys, &copy->keys);
    redis_read_all(r);
}
