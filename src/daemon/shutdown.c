#include "daemon/server_state.h"

#include "daemon/status/web.h"
#include "util/clock.h"
#include "util/log.h"

/* The last step: only closing handles are left in the loop. */
static void let_go(struct server *s)
{
    s->phase = SERVER_GONE;
    loop_fini(s);
    for (int i = 0; i < s->signal_count; i++) {
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    }
}

void shutdown_on_embedded(void *ctx)
{
    let_go(ctx);
}

/* Closes the links before the embedded Redis gets its signal. */
void shutdown_close(struct server *s)
{
    s->phase = SERVER_CLOSING;
    web_close(s);
    if (s->net != NULL) {
        net_close(s->net);
    }
    if (s->store != NULL) {
        store_close(s->store);
    }
    if (s->embedded != NULL) {
        embedded_stop(s->embedded);
    } else {
        let_go(s);
    }
}

void shutdown_begin(struct server *s)
{
    switch (s->phase) {
    case SERVER_STARTING:
    case SERVER_RUNNING:
        log_notice("server", "stopping");
        notify_send(&s->notify, "STOPPING=1\nSTATUS=Stopping");
        loop_begin(s);
        s->phase = SERVER_STOPPING;
        s->stop_deadline_ms = s->now_ms + s->config.redis_timeout_ms;
        net_stop_listening(s->net);
        engine_stop(s->engine);
        cmd_stop(s->cmd);
        break;
    case SERVER_STOPPING:
        log_notice("server", "told again to stop: not waiting for Redis");
        s->stop_deadline_ms = 0;
        break;
    case SERVER_CLOSING:
        embedded_stop(s->embedded);
        break;
    case SERVER_GONE:
        break;
    }
}

/* Called after a turn: the effects of engine_stop() were sent, and replies written. */
void shutdown_check(struct server *s)
{
    if (s->phase == SERVER_STOPPING &&
        (engine_stopped(s->engine) || clock_boot_ms() >= s->stop_deadline_ms)) {
        shutdown_close(s);
    }
}
