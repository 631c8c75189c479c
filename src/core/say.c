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

void say_int(struct locks *l, struct call_ref to, int64_t value)
{
    reply(l, to, REPLY_INT)->value = value;
}

void say_null(struct locks *l, struct call_ref to)
{
    (void)reply(l, to, REPLY_NULL);
}

void say_error(struct locks *l, struct call_ref to, enum lock_error error,
               struct span text)
{
    struct span copy = effects_copy(&l->fx, text);
    struct effect_reply *r = reply(l, to, REPLY_ERROR);

    r->error = error;
    r->text = copy;
}

void say_token(struct locks *l, struct call_ref to, uint64_t token, uint64_t grant)
{
    struct effect_reply *r = reply(l, to, REPLY_TOKEN);

    r->value = (int64_t)token;
    r->grant = grant;
}

void say_notice(struct locks *l, enum notice_kind kind, const struct hold *hold)
{
    struct span name = effects_copy(&l->fx, lock_name(hold->lock));
    struct span owner = effects_copy(&l->fx, field_owner(hold->field));
    struct effect *e = effects_add(&l->fx, EFFECT_NOTICE);

    e->notice = (struct effect_notice){
        .kind = kind, .name = name, .owner = owner, .token = hold->token
    };
}
