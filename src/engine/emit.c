/* Effects for clients: replies and notices. */
#include "engine/emit.h"
#include "engine/engine_priv.h"

static struct effect_reply *add_reply(struct engine *eng, struct call_ref to,
                                      enum reply_kind kind)
{
    struct effect *effect = effects_add(&eng->fx, EFFECT_REPLY);

    effect->reply.to = to;
    effect->reply.kind = kind;
    return &effect->reply;
}

void emit_unreached(struct engine *eng, struct call_ref to)
{
    (void)add_reply(eng, to, REPLY_UNREACHED);
}

void emit_int(struct engine *eng, struct call_ref to, int64_t value)
{
    add_reply(eng, to, REPLY_INT)->value = value;
}

void emit_renewed(struct engine *eng, struct call_ref to, int64_t left_ms,
                  const struct hold *hold)
{
    struct effect_reply *reply;

    if (hold != NULL && hold->token == 0) {
        (void)add_reply(eng, to, REPLY_NULL);
        return;
    }
    reply = add_reply(eng, to, REPLY_INT);
    reply->value = left_ms > 0 ? left_ms : 0;
    reply->token = hold == NULL ? 0 : hold->token;
}

void emit_null(struct engine *eng, struct call_ref to)
{
    (void)add_reply(eng, to, REPLY_NULL);
}

void emit_error(struct engine *eng, struct call_ref to, enum lock_error error,
                struct span text)
{
    struct span copy = effects_copy(&eng->fx, text);
    struct effect_reply *reply = add_reply(eng, to, REPLY_ERROR);

    reply->error = error;
    reply->text = copy;
}

void emit_op_error(struct engine *eng, struct call_ref to, const struct op_result *r)
{
    switch (r->status) {
    case OP_WRONGTYPE:
        emit_error(eng, to, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        break;
    case OP_NOREPLICAS:
        emit_error(eng, to, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
        break;
    default:
        emit_error(eng, to, LOCK_BACKEND, r->text);
        break;
    }
}

void emit_other_data(struct engine *eng, struct call_ref to, int64_t ttl_ms,
                     struct span data)
{
    struct effect_reply *reply = add_reply(eng, to, REPLY_ERROR);

    reply->error = LOCK_WRONGTYPE;
    reply->text = TEXT_WRONGTYPE;
    reply->value = ttl_ms;
    reply->data = data.ptr == NULL ? data : effects_copy(&eng->fx, data);
}

void emit_latch(struct engine *eng, struct call_ref to, const struct latch_told *told,
                size_t waiting)
{
    struct effect_reply *reply = add_reply(eng, to, REPLY_LATCH);

    reply->value = told->value;
    reply->latch_state = told->state;
    reply->waiting = waiting;
}

void emit_leader(struct engine *eng, struct call_ref to, const struct leader *leader)
{
    struct effect_reply *reply = add_reply(eng, to, REPLY_LEADER);

    reply->token = leader->token;
    reply->text = effects_copy(&eng->fx, leader->owner);
    reply->data = effects_copy(&eng->fx, leader->data);
}

void emit_leader_change(struct engine *eng, struct span name,
                        const struct leader *leader)
{
    struct effect_leader change = {
        .name = effects_copy(&eng->fx, name),
        .leader = { .token = leader->token,
                    .owner = effects_copy(&eng->fx, leader->owner),
                    .data = effects_copy(&eng->fx, leader->data) },
    };

    effects_add(&eng->fx, EFFECT_LEADER)->leader = change;
}

void emit_grant(struct engine *eng, struct call_ref to, const struct attach *a)
{
    struct effect_reply *reply = add_reply(eng, to, REPLY_TOKEN);

    reply->value = (int64_t)a->entry->hold->token;
    reply->grant = a->grant;
}

void emit_heartbeat(struct engine *eng, const struct attach *a)
{
    struct effect *effect = effects_add(&eng->fx, EFFECT_HEARTBEAT);

    effect->heartbeat.conn = a->session->conn.key;
    effect->heartbeat.every_ms = a->entry->spec->terms.heartbeat_ms;
}

void emit_tokens(struct engine *eng, struct call_ref to, const uint64_t *tokens,
                 size_t count, uint64_t grant)
{
    struct effect_reply *reply = add_reply(eng, to, REPLY_TOKENS);

    reply->tokens = tokens;
    reply->token_count = count;
    reply->grant = grant;
}

/* The connections that a hold is attached to. One may be so by several entries. */
static size_t list_attached(struct engine *eng, const struct hold *hold, uint64_t *ret)
{
    uint64_t notice = ++eng->next_notice;
    size_t count = 0;

    for (struct entry *e = hold->entries; e != NULL; e = e->next) {
        for (const struct attach *a = entry_first_attach(e); a != NULL;
             a = attach_next(a)) {
            struct session *s = a->session;

            if (s->noticed != notice) {
                s->noticed = notice;
                ret[count++] = s->conn.key;
            }
        }
    }
    return count;
}

void emit_wait_end(struct engine *eng, const struct waiter *w, enum wait_end end,
                   enum lock_error error, uint64_t token)
{
    uint64_t waited = eng->now - w->began;

    if (w->polls && end != WAIT_GRANTED) {
        return; /* the client asks again, most likely */
    }
    if (eng->cfg.long_wait_ms == 0 || waited < eng->cfg.long_wait_ms) {
        return;
    }
    effects_add(&eng->fx, EFFECT_WAITED)->waited = (struct effect_waited){
        .name = effects_copy(&eng->fx, lock_name(w->lock)),
        .owner = effects_copy(&eng->fx, field_owner(spec_field(w->spec))),
        .id = effects_copy(&eng->fx, spec_id(w->spec)),
        .trace = effects_copy(&eng->fx, spec_trace(w->spec)),
        .token = token,
        .end = end,
        .error = error,
        .lock_kind = w->spec->terms.lock_kind,
        .waited_ms = waited,
        .conn = w->session == NULL ? 0 : w->session->conn.key,
    };
}

void emit_held_end(struct engine *eng, const struct entry *e, enum held_end end,
                   enum loss_cause cause)
{
    const struct hold *hold = e->hold;
    const struct attach *a;
    uint64_t held;

    if (eng->cfg.long_hold_ms == 0) {
        return;
    }
    held = eng->now - e->since;
    if (held < eng->cfg.long_hold_ms || hold_is_rest(hold)) {
        return;
    }
    a = entry_first_attach(e);
    effects_add(&eng->fx, EFFECT_HELD)->held = (struct effect_held){
        .name = effects_copy(&eng->fx, lock_name(hold->lock)),
        .owner = hold->owner_kind == OWNER_ANONYMOUS
                     ? SPAN_NONE
                     : effects_copy(&eng->fx, field_owner(hold_field(hold))),
        .id = effects_copy(&eng->fx, spec_id(e->spec)),
        .trace = effects_copy(&eng->fx, spec_trace(e->spec)),
        .token = hold->token,
        .end = end,
        .cause = cause,
        .lock_kind = hold->lock_kind,
        .held_ms = held,
        .conn = a == NULL ? 0 : a->session->conn.key,
    };
}

void emit_if_heard(struct engine *eng, enum notice_kind kind, const struct hold *hold)
{
    if (eng->is_heard) {
        (void)emit_notice(eng, kind, hold);
    }
}

struct effect_notice *emit_notice(struct engine *eng, enum notice_kind kind,
                                  const struct hold *hold)
{
    bool concerns_holders = kind != NOTICE_GRANTED && kind != NOTICE_RELEASED;
    struct effect_notice n = { .kind = kind, .token = hold->token, .user = hold->user };
    struct effect *fx;

    n.name = effects_copy(&eng->fx, lock_name(hold->lock));
    n.owner = effects_copy(&eng->fx, field_owner(hold_field(hold)));
    if (concerns_holders && hold->attached > 0) {
        uint64_t *conns = effects_alloc(&eng->fx, hold->attached * sizeof(*conns));

        n.conn_count = list_attached(eng, hold, conns);
        n.conns = conns;
    }
    fx = effects_add(&eng->fx, EFFECT_NOTICE);
    fx->notice = n;
    return &fx->notice;
}
