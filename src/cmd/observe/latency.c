#include "cmd/observe/latency.h"

#include "cmd/handlers.h"
#include "util/clock.h"

static const char *const EVENTS[LATENCY_EVENT_COUNT] = {
    [LATENCY_COMMAND] = "command",
    [LATENCY_LOOP] = "loop",
    [LATENCY_REDIS] = "redis",
    [LATENCY_RENEWAL] = "renewal",
};

void latency_add(struct latency_series *s, uint64_t at_s, uint64_t ms)
{
    struct latency_sample *last =
        &s->samples[(s->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES];

    s->max_ms = ms > s->max_ms ? ms : s->max_ms;
    if (s->count > 0 && last->at_s == at_s) {
        last->ms = ms > last->ms ? ms : last->ms;
        return;
    }
    s->samples[s->next] = (struct latency_sample){ at_s, ms };
    s->next = (s->next + 1) % LATENCY_SAMPLES;
    s->count += s->count < LATENCY_SAMPLES;
}

const struct latency_sample *latency_sample(const struct latency_series *s, size_t i)
{
    return &s->samples[(s->next + LATENCY_SAMPLES - s->count + i) % LATENCY_SAMPLES];
}

void cmd_latency(struct cmd *c, enum latency_event event, uint64_t ms)
{
    if (c->limits.latency_ms != 0 && ms >= c->limits.latency_ms) {
        latency_add(&c->latency->of[event], clock_wall_us() / 1000000, ms);
    }
}

/* --- LATENCY ----------------------------------------------------------- */

/* Finds an event by name; LATENCY_EVENT_COUNT: there is none. */
static enum latency_event find_event(const struct command_ctx *ctx, size_t at)
{
    int i = 0;

    while (i < LATENCY_EVENT_COUNT && !ctx_arg_is(ctx, at, EVENTS[i])) {
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
        resp_bulk_str(ctx->out, EVENTS[i]);
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
