/* LATENCY: when the daemon, or Redis behind it, was slow, and how slow. */
#include "cmd/handlers.h"
#include "cmd/observe/latency.h"

#include "util/clock.h"

/* Finds an event by name; LATENCY_EVENT_COUNT: there is none. */
static enum latency_event find_event(const struct command_ctx *ctx, size_t at)
{
    int i = 0;

    while (i < LATENCY_EVENT_COUNT &&
           !ctx_arg_is(ctx, at, latency_name((enum latency_event)i))) {
        i++;
    }
    return (enum latency_event)i;
}

static struct latency_series *series_of(const struct command_ctx *ctx, int event)
{
    return &ctx->cmd->latency->of[event];
}

void cmd_latency_latest(struct command_ctx *ctx)
{
    size_t count = 0;

    for (int i = 0; i < LATENCY_EVENT_COUNT; i++) {
        count += series_of(ctx, i)->count > 0;
    }
    resp_array(ctx->out, count);
    for (int i = 0; i < LATENCY_EVENT_COUNT; i++) {
        const struct latency_series *s = series_of(ctx, i);
        const struct latency_sample *last;

        if (s->count == 0) {
            continue;
        }
        last = latency_sample(s, s->count - 1);
        resp_array(ctx->out, 4);
        resp_bulk_str(ctx->out, latency_name((enum latency_event)i));
        resp_int(ctx->out, (int64_t)last->at_s);
        resp_int(ctx->out, (int64_t)last->ms);
        resp_int(ctx->out, (int64_t)s->max_ms);
    }
}

void cmd_latency_history(struct command_ctx *ctx)
{
    enum latency_event event = find_event(ctx, 2);
    const struct latency_series *s;

    if (event == LATENCY_EVENT_COUNT) {
        resp_array(ctx->out, 0);
        return;
    }
    s = series_of(ctx, event);
    resp_array(ctx->out, s->count);
    for (size_t i = 0; i < s->count; i++) {
        const struct latency_sample *sample = latency_sample(s, i);

        resp_array(ctx->out, 2);
        resp_int(ctx->out, (int64_t)sample->at_s);
        resp_int(ctx->out, (int64_t)sample->ms);
    }
}

static int64_t reset_event(struct latency_series *s)
{
    bool any = s->count > 0;

    memset(s, 0, sizeof(*s));
    return any;
}

void cmd_latency_reset(struct command_ctx *ctx)
{
    int64_t count = 0;

    for (int i = 0; i < LATENCY_EVENT_COUNT && ctx->argc == 2; i++) {
        count += reset_event(series_of(ctx, i));
    }
    for (size_t at = 2; at < ctx->argc; at++) {
        enum latency_event event = find_event(ctx, at);

        if (event != LATENCY_EVENT_COUNT) {
            count += reset_event(series_of(ctx, event));
        }
    }
    resp_int(ctx->out, count);
}

void cmd_latency_graph(struct command_ctx *ctx)
{
    enum latency_event event = find_event(ctx, 2);
    struct buf text = { 0 };

    if (event == LATENCY_EVENT_COUNT || series_of(ctx, event)->count == 0) {
        struct span name = ctx->argv[2];

        ctx_error(ctx, LATCHD_ERR, "No samples available for event '%.*s'",
                  span_quoted_len(name), name.ptr);
        return;
    }
    latency_graph(series_of(ctx, event), latency_name(event), clock_wall_us() / 1000000,
                  &text);
    resp_verbatim(ctx->out, ctx->proto, buf_span(&text));
    buf_reset(&text);
}

void cmd_latency_doctor(struct command_ctx *ctx)
{
    struct buf text = { 0 };

    latency_report(ctx->cmd->latency, ctx->cmd->limits.latency_ms, &text);
    resp_verbatim(ctx->out, ctx->proto, buf_span(&text));
    buf_reset(&text);
}

/* --- HISTOGRAM -------------------------------------------------------- */

struct histograms {
    struct command_ctx *ctx;
    struct buf items;
    size_t count;
};

/* Writes, for powers of two of microseconds, how many calls took at most that long. */
static void add_histogram(struct histograms *hs, const struct command *command)
{
    const struct histogram *h = &hs->ctx->cmd->stats[command - COMMANDS].work;
    struct buf pairs = { 0 };
    uint64_t before = 0;
    size_t count = 0;

    if (h->count == 0) {
        return;
    }
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
        uint64_t within = histogram_within(h, octave);

        if (within > before) {
            resp_int(&pairs, (int64_t)1 << octave);
            resp_int(&pairs, (int64_t)within);
            count++;
            before = within;
        }
    }
    hs->count++;
    resp_bulk_str(&hs->items, command->name);
    resp_map(&hs->items, hs->ctx->proto, 2);
    resp_bulk_str(&hs->items, "calls");
    resp_int(&hs->items, (int64_t)h->count);
    resp_bulk_str(&hs->items, "histogram_usec");
    resp_map(&hs->items, hs->ctx->proto, count);
    buf_add_span(&hs->items, buf_span(&pairs));
    buf_reset(&pairs);
}

static void add_named(struct histograms *hs, struct span name)
{
    const struct command *command = command_find(name);
    const struct command *subs;
    size_t count;

    if (command == NULL) {
        return;
    }
    add_histogram(hs, command);
    subs = command_subs(command, &count);
    for (size_t i = 0; i < count; i++) {
        add_histogram(hs, &subs[i]);
    }
}

void cmd_latency_histogram(struct command_ctx *ctx)
{
    struct histograms hs = { .ctx = ctx };

    for (size_t i = 0; i < COMMAND_COUNT && ctx->argc == 2; i++) {
        add_histogram(&hs, &COMMANDS[i]);
    }
    for (size_t at = 2; at < ctx->argc; at++) {
        add_named(&hs, ctx->argv[at]);
    }
    resp_map(ctx->out, ctx->proto, hs.count);
    buf_add_span(ctx->out, buf_span(&hs.items));
    buf_reset(&hs.items);
}
