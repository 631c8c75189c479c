/* The channel on which daemons announce themselves to each other. */
#include "backend/redis/redis_command.h"
#include "backend/redis/redis_sub_priv.h"

void sub_ask_daemons(struct redis_sub *s)
{
    struct buf *out = redis_conn_out(s->conn);

    if (!s->hears_daemons) {
        return;
    }
    command_begin(out, 2);
    command_word(out, SPAN("SUBSCRIBE"));
    command_word(out, span_str(s->daemons));
    s->daemons_open = true;
}

void sub_on_daemons_refused(struct redis_sub *s, const char *why)
{
    s->daemons_open = false;
    if (!log_is_news(&s->told, s->daemons)) {
        return;
    }
    log_warning("redis-sub",
                "%s refuses SUBSCRIBE %s (%s): latchd does not wait for other daemons "
                "when Redis has lost its data; its user needs +subscribe and "
                "allchannels",
                redis_conn_address(s->conn), s->daemons, why);
}

bool sub_on_daemons(struct redis_sub *s, const struct span *texts, size_t count)
{
    const struct store_listener *to = s->listener;

    if (!s->hears_daemons || count < 2 || !span_eq(texts[1], span_str(s->daemons))) {
        return false;
    }
    if (count == 3 && span_eq(texts[0], SPAN("message"))) {
        to->on_announced(to->ctx, texts[2]);
    } else if (span_eq(texts[0], SPAN("subscribe"))) {
        s->daemons_open = false;
        to->on_listening(to->ctx);
    }
    return true;
}
