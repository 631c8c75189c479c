#include "daemon/options.h"
#include "daemon/server.h"
#include "io/tls.h"
#include "latchd-config.h"

#include <stdio.h>
#include <stdlib.h>

/* Exit codes: 1 = it could not start or run, 2 = the configuration is wrong. */
enum { EXIT_CONFIG = 2 };

static int print(struct buf *text)
{
    size_t len = buf_len(text);
    bool ok = fwrite(buf_ptr(text), 1, len, stdout) == len && fflush(stdout) == 0;

    buf_reset(text);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* With what it was built with, as systemctl has it. */
static void version(struct buf *out)
{
    buf_printf(out, "latchd " LATCHD_VERSION " %ctls %chttp\n",
               tls_is_built() ? '+' : '-', LATCHD_HTTP ? '+' : '-');
}

static int act(const struct options *options, const struct config *config)
{
    struct buf text = { 0 };

    switch (options->action) {
    case OPTIONS_PRINT_CONFIG:
        config_print(config, &text);
        return print(&text);
    case OPTIONS_CHECK_CONFIG:
        buf_add_str(&text, "The configuration is right.\n");
        return print(&text);
    default:
        return server_main(options, config) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
}

static int run(const struct options *options)
{
    char err[CONFIG_ERROR_MAX];
    struct config config;
    int code = EXIT_CONFIG;

    if (!options_config(options, &config, err, sizeof(err))) {
        (void)fprintf(stderr, "latchd: %s\n", err);
        return EXIT_CONFIG;
    }
    if (server_check_config(&config, err, sizeof(err))) {
        code = act(options, &config);
    } else {
        (void)fprintf(stderr, "latchd: %s\n", err);
    }
    config_fini(&config);
    return code;
}

int main(int argc, char **argv)
{
    char err[CONFIG_ERROR_MAX];
    struct options options;
    struct buf text = { 0 };

    if (!options_parse(argc, (const char *const *)argv, &options, err, sizeof(err))) {
        (void)fprintf(stderr, "latchd: %s\n", err);
        return EXIT_CONFIG;
    }
    switch (options.action) {
    case OPTIONS_HELP:
        options_help(&text);
        return print(&text);
    case OPTIONS_VERSION:
        version(&text);
        return print(&text);
    default:
        return run(&options);
    }
}
