/* input: turns the bytes of a conn into requests, and runs them one at a time, in each
 * turn no more than the others can wait for. */
#include "net/net_priv.h"
#include "resp/writer.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TLS_HELLO = 0x16 }; /* the first byte of every TLS client */

void conn_drop_input(struct conn *c)
{
    if (c->in != NULL) {
        buf_reset(&c->in->bytes);
        free(c->in);
        c->in = NULL;
    }
}

static void protocol_error(struct conn *c, const char *text)
{
    log_about(LOG_INFO, "net", &(struct log_about){ .client = c->slot.key },
              "a client does not speak the Redis protocol: %s", text);
    conn_set_end(c, END_PROTOCOL);
    resp_errorf(conn_out(c), "ERR", "Protocol error: %s", text);
    conn_drain(c);
}

bool conn_had_its_share(struct conn *c)
{
    if (c->turn != c->net->turn) {
        c->turn = c->net->turn;
        c->ran = 0;
    }
    return c->ran >= TURN_REQUESTS || conn_unwritten(c) > TURN_REPLY_BYTES;
}

static bool can_run(const struct conn *c)
{
    return c->state == CONN_OPEN && c->flow != FLOW_SUSPENDED;
}

static struct resp_limits limits_of(const struct conn *c)
{
    if (c->trusted) {
        return (struct resp_limits){ .args_max = RESP_ARGS_MAX,
                                     .bulk_max = c->net->limits.query_buffer };
    }
    return (struct resp_limits){ .args_max = RESP_ARGS_MAX_UNAUTH,
                                 .bulk_max = RESP_BULK_MAX_UNAUTH,
                                 .unauth = true };
}

static void run_again(struct conn *c)
{
    struct net *n = c->net;

    c->again = false;
    c->ran++;
    n->handler.on_event(n->handler.ctx);
    n->handler.on_again(n->handler.ctx, c);
}

/* Called after the last request for now. True: replies are still awaited. */
static bool has_run(struct conn *c)
{
    struct net *n = c->net;

    if (c->state == CONN_OPEN && n->handler.on_ran != NULL) {
        n->handler.on_ran(n->handler.ctx, c);
    }
    return c->flow != FLOW_FREE;
}

/* Notes when the next request begins. False: the others are to run first. */
static bool begin_request(struct conn *c, uint64_t start_us, bool first)
{
    if (conn_had_its_share(c)) {
        return false;
    }
    c->net->request_us = first ? start_us : clock_boot_us();
    return c->net->request_us < start_us + TURN_SHARE_US;
}

/* Runs the complete requests at the start of `data`; start_us is now. Returns how many
 * bytes that was. *ret_more: stopped because the conn has had its share of the turn. */
static size_t run_requests(struct conn *c, struct span data, uint64_t start_us,
                           uint64_t *hint, bool *ret_more)
{
    struct net *n = c->net;
    struct resp_request req;
    bool first = true;
    size_t at = 0;
    size_t used;

    c->running = true;
    while (can_run(c) && (c->again || at < data.len)) {
        struct resp_limits limits;
        enum resp_status status;

        if (!begin_request(c, start_us, first)) {
            *ret_more = true;
            break;
        }
        first = false;
        c->more = at < data.len;
        if (c->again) {
            run_again(c);
            continue;
        }
        limits = limits_of(c);
        status = resp_parse(n->parser, &limits, span_of(data.ptr + at, data.len - at),
                            hint, &used, &req);
        if (status == RESP_BROKEN && has_run(c)) {
            *hint = 0; /* the error is sent once earlier requests are answered */
            break;
        }
        if (status == RESP_BROKEN) {
            protocol_error(c, resp_parser_error(n->parser));
        }
        if (status != RESP_DONE) {
            break;
        }
        at += used;
        c->ran++;
        c->more = at < data.len;
        if (req.argc > 0) {
            n->handler.on_event(n->handler.ctx);
            n->handler.on_request(n->handler.ctx, c, &req);
        }
    }
    (void)has_run(c);
    if (c->flow == FLOW_SUSPENDED) {
        *ret_more = false; /* conn_resume() continues */
    }
    c->running = false;
    return at;
}

/* Decides what happens next with the input, after requests ran or input was stored. */
static void settle_input(struct conn *c, bool more)
{
    if (c->state != CONN_OPEN) {
        if (c->state != CONN_CLOSED) {
            conn_drop_input(c);
        }
        return;
    }
    if (more) {
        /* Back-pressure: nothing more is read until the input is used up. */
        list_del(&c->work);
        list_append(&c->net->later, &c->work);
        stream_read_stop(c->stream);
        return;
    }
    if (c->input_over) {
        conn_input_ended(c);
        return;
    }
    if (c->in != NULL && buf_len(&c->in->bytes) == 0) {
        conn_drop_input(c);
    }
    stream_read_start(c->stream);
    if (c->in == NULL || buf_len(&c->in->bytes) <= c->net->limits.query_buffer) {
        return;
    }
    if (c->flow != FLOW_FREE) {
        /* The peer would take an error for the reply to the suspended request. */
        log_about(LOG_NOTICE, "net", &(struct log_about){ .client = c->slot.key },
                  "a client sends more than query-buffer-limit behind a command that "
                  "waits, and is closed: it should wait for its replies");
        conn_set_end(c, END_INPUT);
        conn_close(c);
    } else {
        protocol_error(c, "too big request");
    }
}

static void keep_input(struct conn *c, const char *data, size_t len)
{
    if (len == 0) {
        return;
    }
    if (c->in == NULL) {
        c->in = xcalloc(1, sizeof(*c->in));
    }
    buf_add(&c->in->bytes, data, len);
}

/* Counts the memory of a conn that has taken input. Where conn_flush() counts it at the
 * end of this turn, that is enough. */
static void count_input(struct conn *c)
{
    if (list_empty(&c->dirty)) {
        conn_count(c);
    }
}

void conn_run(struct conn *c)
{
    struct span data = c->in == NULL ? SPAN("") : buf_span(&c->in->bytes);
    uint64_t hint = c->in == NULL ? 0 : c->in->hint;
    bool more = false;
    size_t used = run_requests(c, data, clock_boot_us(), &hint, &more);

    if (c->in != NULL) {
        c->in->hint = hint;
        buf_drop(&c->in->bytes, used);
    }
    settle_input(c, more);
    count_input(c);
}

void conn_on_read(void *ctx, const char *data, size_t len)
{
    struct conn *c = ctx;
    uint64_t now_us = clock_boot_us();
    uint64_t hint = 0;
    bool more = false;
    size_t used;

    c->net->stats.bytes_in += len;
    c->active_ms = now_us / 1000;
    c->inputs += c->inputs < UINT32_MAX ? 1 : 3;
    if (c->state != CONN_OPEN) {
        return;
    }
    if (c->inputs == 1 && data[0] == TLS_HELLO && !stream_is_tls(c->stream)) {
        /* A TLS client would wait for ever for our hello. */
        protocol_error(c, "this port does not speak TLS");
        return;
    }
    if (!list_empty(&c->work)) {
        keep_input(c, data, len); /* net_end_turn() runs it */
        count_input(c);
    } else if (c->in != NULL || c->flow == FLOW_SUSPENDED) {
        keep_input(c, data, len);
        conn_run(c);
    } else {
        used = run_requests(c, span_of(data, len), now_us, &hint, &more);
        if (c->state == CONN_OPEN) {
            keep_input(c, data + used, len - used);
        }
        if (c->in != NULL) {
            c->in->hint = hint;
        }
        settle_input(c, more);
        count_input(c);
    }
}

bool conn_has_more(const struct conn *c)
{
    return c->more;
}

void conn_suspend(struct conn *c)
{
    c->flow = FLOW_SUSPENDED;
    if (!c->running && !list_empty(&c->work)) {
        list_del(&c->work);
        settle_input(c, false);
    }
}

void conn_await(struct conn *c)
{
    c->flow = FLOW_AWAITED;
}

void conn_again(struct conn *c)
{
    c->again = true;
}

void conn_resume(struct conn *c)
{
    if (c->flow == FLOW_FREE) {
        return;
    }
    c->flow = FLOW_FREE;
    if (c->state == CONN_OPEN && !c->running && list_empty(&c->work) &&
        (c->in != NULL || c->again)) {
        list_append(conn_had_its_share(c) ? &c->net->later : &c->net->ready, &c->work);
    }
}
