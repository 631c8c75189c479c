#include "daemon/config.h"
#include "daemon/config_live.h"
#include "daemon/server.h"
#include "io/tls.h"
#include "latchd-config.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>

/* Exit codes: 1 = latchd could not start or run, 2 = the configuration is wrong. */
enum { EXIT_CONFIG = 2 };

static int print_text(struct buf *text)
{
    size_t len = buf_len(text);
    bool ok = fwrite(buf_ptr(text), 1, len, stdout) == len && fflush(stdout) == 0;

    buf_reset(text);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Writes the version and the build's features, in the style of systemctl. */
static void write_version(struct buf *out)
{
    buf_printf(out, "latchd " LATCHD_VERSION " %ctls %chttp\n",
               tls_is_built() ? '+' : '-', LATCHD_HTTP ? '+' : '-');
}

static int run_action(const struct options *options, const struct config *config)
{
    struct buf text = { 0 };

    switch (options->action) {
    case OPTIONS_PRINT_CONFIG:
        config_print(config, &text);
        return print_text(&text);
    case OPTIONS_CHECK_CONFIG:
        buf_add_str(&text, "The configuration is right.\n");
        return print_text(&text);
    default:
        return server_main(options, config) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
}

static int say_mistake(struct span line)
{
    (void)fprintf(stderr, "%slatchd: %.*s\n", log_priority(LOG_ERROR), (int)line.len,
                  line.ptr);
    return EXIT_CONFIG;
}

static int run_daemon(const struct options *options)
{
    struct buf mistakes = { 0 };
    struct span rest;
    struct config config;
    int code = EXIT_CONFIG;

    if (config_live_read(options, &config, &mistakes)) {
        code = run_action(options, &config);
        config_fini(&config);
    }
    for (rest = buf_span(&mistakes); rest.len > 0;) {
        code = say_mistake(span_next(&rest, '\n'));
    }
    buf_reset(&mistakes);
    return code;
}

int main(int argc, char **argv)
{
    char err[CONFIG_ERROR_MAX];
    struct options options;
    struct buf text = { 0 };

    log_detect_journal();
    if (!options_parse(argc, (const char *const *)argv, &options, err, sizeof(err))) {
        return say_mistake(span_str(err));
    }
    switch (options.action) {
    case OPTIONS_HELP:
        options_help(&text);
        return print_text(&text);
    case OPTIONS_VERSION:
        write_version(&text);
        return print_text(&text);
    default:
        return run_daemon(&options);
    }
}
