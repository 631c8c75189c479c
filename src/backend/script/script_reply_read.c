#include "backend/script/script_reply_priv.h"

#include "latchd/protocol.h"

const redisReply *reply_next(struct reply_reader *r, int type)
{
    const redisReply *e;

    if (r->bad || r->at >= (size_t)r->array->elements) {
        r->bad = true;
        return NULL;
    }
    e = r->array->element[r->at++];
    if (e == NULL || e->type != type) {
        r->bad = true;
        return NULL;
    }
    return e;
}

int64_t reply_int(struct reply_reader *r)
{
    const redisReply *e = reply_next(r, REDIS_REPLY_INTEGER);

    return e == NULL ? 0 : e->integer;
}

bool reply_flag(struct reply_reader *r)
{
    return reply_int(r) == 1;
}

bool reply_last_flag(struct reply_reader *r)
{
    return r->at < (size_t)r->array->elements && reply_flag(r);
}

struct span reply_text(struct reply_reader *r)
{
    const redisReply *e = reply_next(r, REDIS_REPLY_STRING);

    return e == NULL ? SPAN_NONE : span_of(e->str, (size_t)e->len);
}

uint64_t reply_token(struct reply_reader *r)
{
    int64_t value = reply_int(r);

    if (value < 0 || (uint64_t)value > SCRIPT_TOKEN_MAX) {
        r->bad = true;
        return 0;
    }
    return (uint64_t)value;
}

uint64_t reply_known_token(struct reply_reader *r)
{
    uint64_t token = reply_token(r);

    r->bad = r->bad || token == 0;
    return token;
}

uint32_t reply_limit(struct reply_reader *r)
{
    int64_t limit = reply_int(r);

    r->bad = r->bad || limit > LATCHD_LIMIT_MAX;
    return limit > 0 && !r->bad ? (uint32_t)limit : 0;
}
