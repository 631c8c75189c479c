/* Effects for clients: replies and notices. */
#include "core/parts.h"

static struct effect_reply *reply(struct locks *l, struct call_ref to,
                                  enum reply_kind kind)
{
    struct effect *e = effects_add(&l->fx, EFFECT_REPLY);

    e->reply.to = to;
    e->reply.kind = kind;
    return &e->reply;
}

void say_unreached(struct locks *l, struct call_ref to)
{
    (void)reply(l, to, REPLY_UNREACHED);
}

void say_int(struct locks *l, struct call_ref to, int64_t value)
{
    reply(l, to, REPLY_INT)->value = value;
}

/* A call of our own, of one name of an MLOCK, is answered to that. */
static bool is_inner(struct locks *l, struct call_ref to, struct piece **ret)
{
    *ret = mlock_piece(l, to);
    return mlock_is_call(to);
}

void say_null(struct locks *l, struct call_ref to)
{
    struct piece *p;

    if (!is_inner(l, to, &p)) {
        (void)reply(l, to, REPLY_NULL);
    } else if (p != NULL) {
        mlock_told_null(l, p);
    }
}

void say_error(struct locks *l, struct call_ref to, enum lock_error error,
               struct span text)
{
    struct span copy = effects_copy(&l->fx, text);
    struct effect_reply *r;
    struct piece *p;

    if (is_inner(l, to, &p)) {
        if (p != NULL) {
            mlock_told_error(l, p, error, copy);
        }
        return;
    }
    r = reply(l, to, REPLY_ERROR);
    r->error = error;
    r->text = copy;
}

void say_grant(struct locks *l, struct call_ref to, const struct attach *a)
{
    struct effect_reply *r;
    struct piece *p;

    if (is_inner(l, to, &p)) {
        if (p != NULL) {
            mlock_told_grant(l, p, a);
        }
        return;
    }
    r = reply(l, to, REPLY_TOKEN);
    r->value = (int64_t)a->entry->hold->token;
    r->grant = a->grant;
}

void say_tokens(struct locks *l, struct call_ref to, const uint64_t *tokens,
                size_t count, uint64_t grant)
{
    struct effect_reply *r = reply(l, to, REPLY_TOKENS);

    r->tokens = tokens;
    r->token_count = count;
    r->grant = grant;
}

/* The connections that a hold is attached to. One may be so by several entries. */
static size_t list_attached(struct locks *l, const struct hold *hold, uint64_t *ret)
{
    uint64_t notice = ++l->next_notice;
    size_t count = 0;

    for (struct entry *e = hold->entries; e != NULL; e = e->next) {
        for (const struct attach *a = e->attaches; a != NULL; a = a->next) {
            struct session *s = a->session;

            if (s->noticed != notice) {
                s->noticed = notice;
                ret[count++] = s->conn.key;
            }
        }
    }
    return count;
}

void say_waited(struct locks *l, const struct waiter *w, enum wait_end end,
                enum lock_error error)
{
    uint64_t waited = l->now - w->began;

    if (l->cfg.long_wait_ms == 0 || waited < l->cfg.long_wait_ms) {
        return;
    }
    effects_add(&l->fx, EFFECT_WAITED)->waited = (struct effect_waited){
        .name = effects_copy(&l->fx, lock_name(w->lock)),
        .owner = effects_copy(&l->fx, field_owner(want_field(w->want))),
        .end = end,
        .error = error,
        .kind = w->want->lock_kind,
        .waited_ms = waited,
        .conn = w->session == NULL ? 0 : w->session->conn.key,
    };
}

struct effect_notice *say_notice(struct locks *l, enum notice_kind kind,
                                 const struct hold *hold)
{
    bool doubt = kind != NOTICE_GRANTED && kind != NOTICE_RELEASED;
    struct effect_notice n = { .kind = kind, .token = hold->token };
    struct effect *fx;

    n.name = effects_copy(&l->fx, lock_name(hold->lock));
    n.owner = effects_copy(&l->fx, field_owner(hold_field(hold)));
    if (doubt && hold->attached > 0) {
        uint64_t *conns = effects_alloc(&l->fx, hold->attached * sizeof(*conns));

        n.conn_count = list_attached(l, hold, conns);
        n.conns = conns;
    }
    fx = effects_add(&l->fx, EFFECT_NOTICE);
    fx->notice = n;
    return &fx->notice;
}
