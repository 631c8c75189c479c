#include "daemon/embedded/embedded_link.h"

enum { LINE_MAX_BYTES = 4096 };

void embedded_link_init(struct embedded_link *l, struct io *io, const char *path,
                        const struct embedded_link_events *events)
{
    *l = (struct embedded_link){ .io = io, .path = path, .events = *events };
}

void embedded_link_drop(struct embedded_link *l)
{
    stream_close(l->stream);
    l->stream = NULL;
    l->open = false;
    buf_reset(&l->input);
}

static void on_connect(void *ctx, int status)
{
    struct embedded_link *l = ctx;

    if (status < 0) {
        embedded_link_drop(l);
        l->events.on_end(l->events.ctx);
        return;
    }
    l->open = true;
    l->events.on_open(l->events.ctx);
}

static void on_read(void *ctx, const char *data, size_t len)
{
    struct embedded_link *l = ctx;
    const char *end;

    buf_add(&l->input, data, len);
    while (buf_len(&l->input) > 0 &&
           (end = memchr(buf_ptr(&l->input), '\n', buf_len(&l->input))) != NULL) {
        size_t len_of_line = (size_t)(end - buf_ptr(&l->input));
        char line[128];
        size_t kept = len_of_line < sizeof(line) ? len_of_line : sizeof(line);

        /* A copy, as the event may drop the link and its input. */
        memcpy(line, buf_ptr(&l->input), kept);
        kept -= kept > 0 && line[kept - 1] == '\r' ? 1 : 0;
        buf_drop(&l->input, len_of_line + 1);
        l->events.on_line(l->events.ctx, span_of(line, kept));
    }
    if (buf_len(&l->input) > LINE_MAX_BYTES) {
        buf_clear(&l->input);
    }
}

static void on_end(void *ctx, int status, bool unread)
{
    struct embedded_link *l = ctx;

    embedded_link_drop(l);
    l->events.on_end(l->events.ctx);
}

bool embedded_link_connect(struct embedded_link *l)
{
    static const struct stream_events EVENTS = {
        .on_connect = on_connect,
        .on_read = on_read,
        .on_end = on_end,
    };

    embedded_link_drop(l);
    return stream_connect_unix(l->io, l->path, &EVENTS, l, &l->stream) == 0;
}

void embedded_link_say(struct embedded_link *l, const char *text)
{
    struct buf out = { 0 };

    if (!l->open) {
        return;
    }
    buf_add_str(&out, text);
    stream_send(l->stream, &out);
    buf_reset(&out);
}
