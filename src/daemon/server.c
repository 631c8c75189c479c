#include "daemon/server.h"

#include "daemon/config/config_live.h"
#include "daemon/process.h"
#include "daemon/server_state.h"
#include "latchd-config.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/log.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>

/* --- signals ---------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int signum)
{
    struct server *s = handle->data;

    if (signum == SIGHUP) {
        config_live_reload(s);
    } else {
        shutdown_begin(s);
    }
}

static int open_signals(struct server *s)
{
    static const int SIGNALS[SERVER_SIGNALS] = { SIGTERM, SIGINT, SIGHUP };

    for (int i = 0; i < SERVER_SIGNALS; i++) {
        int r = uv_signal_init(&s->loop, &s->signals[i]);

        if (r < 0) {
            return r;
        }
        s->signal_count++;
        s->signals[i].data = s;
        r = uv_signal_start(&s->signals[i], on_signal, SIGNALS[i]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void random_hex(char *out, size_t digits)
{
    uint8_t byte = 0;

    for (size_t i = 0; i < digits; i++) {
        if (i % 2 == 0 && getrandom(&byte, 1, 0) != 1) {
            abort(); /* without random bytes, IDs would be predictable, or not unique */
        }
        out[i] = "0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15];
    }
    out[digits] = '\0';
}

static uint64_t random_u64(void)
{
    uint64_t value;

    if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
        abort();
    }
    return value;
}

/* --- start and end ---------------------------------------------------- */

/* Runs the loop. True: everything was closed at the end. */
static bool run_loop(struct server *s)
{
    int r = io_init(&s->io, &s->loop);
    bool ok = r == 0;

    if (ok) {
        s->io.runs = true;
        loop_init(s);
        ok = open_signals(s) == 0 && wiring_start(s);
        if (!ok) {
            shutdown_close(s);
        }
        ok = loop_run(s) == 0 && ok;
        wiring_free(s);
        io_fini(&s->io);
    }
    r = uv_loop_close(&s->loop);
    if (r != 0) {
        log_error("server", "the loop still has handles: %d: a bug, please report it",
                  r);
    }
    return ok && r == 0;
}

static void seed_hash(void)
{
    uint64_t key[2] = { random_u64(), random_u64() };

    hash_seed((const uint8_t *)key);
}

bool server_main(const struct options *options, const struct config *config)
{
    struct server *s = xcalloc(1, sizeof(*s));
    bool ok;

    log_setup(config->log_level, config->log_format);
    (void)signal(SIGPIPE, SIG_IGN);
    process_hide();
    seed_hash();
    s->options = options;
    config_copy(&s->config, config);
    s->started_ms = s->now_ms = clock_boot_ms();
    s->started_wall_us = clock_wall_us();
    random_hex(s->run_id, RUN_ID_LEN);
    random_hex(s->instance, OP_INSTANCE_LEN);
    s->seed = random_u64();
    notify_init(&s->notify);
    log_notice("server", "latchd " LATCHD_VERSION " starts, instance %s", s->instance);
    unsafe_warn(options, config);
    ok = uv_loop_init(&s->loop) == 0 && run_loop(s);
    log_second();
    log_notice("server", ok ? "stopped" : "stopped after an error");
    notify_fini(&s->notify);
    config_fini(&s->config);
    free(s);
    return ok;
}
