#include "buffer_conn.h"

uint64_t conn_id(const struct conn *c)
{
    return c->id;
}

void conn_set_data(struct conn *c, void *data)
{
    c->data = data;
}

void *conn_data(const struct conn *c)
{
    return c->data;
}

struct buf *conn_out(struct conn *c)
{
    return &c->out;
}

bool conn_overflows(const struct conn *c)
{
    return buf_len(&c->out) > BUFFER_CONN_OUT_MAX;
}

size_t conn_memory(struct conn *c)
{
    return buf_len(&c->out);
}

void conn_set_exempt(struct conn *c, bool spared)
{
}

void conn_set_end(struct conn *c, enum conn_end why)
{
}

const char *conn_end_text(const struct conn *c)
{
    return "closed";
}

void conn_suspend(struct conn *c)
{
    c->suspended = true;
}

void conn_await(struct conn *c)
{
    c->suspended = false;
    c->awaited = true;
}

void conn_resume(struct conn *c)
{
    c->suspended = c->awaited = false;
}

bool conn_is_at_rest(const struct conn *c)
{
    return !c->suspended;
}

bool conn_suspended(const struct conn *c)
{
    return c->suspended;
}

void conn_again(struct conn *c)
{
    c->again = true;
}

void conn_set_trusted(struct conn *c, bool trusted)
{
    c->trusted = trusted;
}

void conn_drain(struct conn *c)
{
    c->draining = true;
}

uint64_t conn_input_count(const struct conn *c)
{
    return c->input;
}

/* Commands begin when they are executed. */
uint64_t conn_request_us(const struct conn *c)
{
    (void)c;
    return 0;
}

bool conn_is_local(const struct conn *c)
{
    return true;
}
