#include "daemon/config/command_line.h"

#include <stdio.h>
#include <string.h>

/* The state of reading; `config` is NULL while only the syntax is checked. */
struct reader {
    struct options *options;
    struct config *config;
    bool seen[CONFIG_KEYS_MAX];
    char *reterr;
    size_t room;
};

static const struct {
    const char *word;
    enum options_action action;
    const char *help;
} ACTIONS[] = {
    { "--help", OPTIONS_HELP, "Say this." },
    { "--version", OPTIONS_VERSION, "Say which version this is." },
    { "--print-config", OPTIONS_PRINT_CONFIG, "Print the configuration, commented." },
    { "--check-config", OPTIONS_CHECK_CONFIG, "Only say whether it is right." },
};

static bool is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0;
}

static bool read_action(struct reader *r, const char *word)
{
    for (size_t i = 0; i < sizeof(ACTIONS) / sizeof(ACTIONS[0]); i++) {
        if (strcmp(word, ACTIONS[i].word) == 0) {
            r->options->action = ACTIONS[i].action;
            return true;
        }
    }
    return false;
}

/* Reads the value after `=`, or from the words that follow. */
static bool read_value(struct reader *r, const char *equals, bool words, int *at,
                       struct buf *out)
{
    const struct options *o = r->options;
    int first = *at;

    buf_clear(out);
    if (equals != NULL) {
        buf_add_str(out, equals + 1);
        return true;
    }
    while (*at < o->argc && !is_option(o->argv[*at]) && (words || *at == first)) {
        buf_add_str(out, *at == first ? "" : " ");
        buf_add_str(out, o->argv[(*at)++]);
    }
    return *at > first;
}

static bool fail_parse(struct reader *r, int len, const char *word, const char *why)
{
    (void)snprintf(r->reterr, r->room, "%.*s: %s", len > 64 ? 64 : len, word, why);
    return false;
}

static bool fail_unknown(struct reader *r, int len, const char *word)
{
    const struct config_key *guess =
        config_key_guess(span_of(word + 2, (size_t)len - 2));
    char why[CONFIG_ERROR_MAX / 2];

    if (guess == NULL) {
        return fail_parse(r, len, word, "there is no such option, see --help");
    }
    (void)snprintf(why, sizeof(why), "there is no such option, did you mean --%s?",
                   guess->name);
    return fail_parse(r, len, word, why);
}

static bool read_key(struct reader *r, const char *word, int *at, struct buf *value)
{
    const char *equals = strchr(word, '=');
    int len = equals == NULL ? (int)strlen(word) : (int)(equals - word);
    const struct config_key *key = config_key_find(span_of(word + 2, (size_t)len - 2));
    char why[CONFIG_ERROR_MAX / 2];

    if (key == NULL) {
        return fail_unknown(r, len, word);
    }
    if (r->seen[config_key_index(key)]) {
        return fail_parse(r, len, word, "it is there twice");
    }
    r->seen[config_key_index(key)] = true;
    if (!read_value(r, equals, key->type == KEY_WORDS, at, value)) {
        return fail_parse(r, len, word, "the value is missing");
    }
    if (r->config != NULL &&
        !config_set(r->config, key, buf_span(value), why, sizeof(why))) {
        return fail_parse(r, len, word, why);
    }
    return true;
}

static bool read_config_path(struct reader *r, const char *word, int *at,
                             struct buf *value)
{
    struct options *o = r->options;
    const char *equals = strchr(word, '=');

    if (r->config == NULL && o->config_path != NULL) {
        return fail_parse(r, 8, word, "it is there twice");
    }
    o->config_path = equals != NULL ? equals + 1 : o->argv[*at];
    if (!read_value(r, equals, false, at, value)) {
        return fail_parse(r, 8, word, "the file is missing");
    }
    return true;
}

static bool read_words(struct reader *r)
{
    struct buf value = { 0 };
    int at = 1;
    bool ok = true;

    while (ok && at < r->options->argc) {
        const char *word = r->options->argv[at++];

        if (strcmp(word, "--config") == 0 || strncmp(word, "--config=", 9) == 0) {
            ok = read_config_path(r, word, &at, &value);
        } else if (!is_option(word)) {
            ok = fail_parse(r, (int)strlen(word), word,
                            "unexpected; a file is named with --config");
        } else if (!read_action(r, word)) {
            ok = read_key(r, word, &at, &value);
        }
    }
    buf_reset(&value);
    return ok;
}

bool options_parse(int argc, const char *const *argv, struct options *ret, char *reterr,
                   size_t room)
{
    struct options o = { .action = OPTIONS_RUN, .argc = argc, .argv = argv };
    struct reader r = { .options = &o, .reterr = reterr, .room = room };

    if (!read_words(&r)) {
        return false;
    }
    *ret = o;
    return true;
}

bool options_config(const struct options *o, struct config *ret, struct buf *mistakes)
{
    char err[CONFIG_ERROR_MAX];
    struct options copy = *o;
    struct reader r = {
        .options = &copy, .config = ret, .reterr = err, .room = sizeof(err)
    };
    bool ok;

    config_init(ret);
    ok = o->config_path == NULL || config_load(ret, o->config_path, mistakes);
    if (!read_words(&r)) {
        buf_printf(mistakes, "%s\n", err);
        ok = false;
    }
    return ok;
}

void options_help(struct buf *out)
{
    buf_add_str(out,
                "Usage: latchd [--config FILE] [--KEY VALUE ...]\n"
                "A lock service for clients that speak the Redis protocol: plain,\n"
                "fair, read and write locks, and semaphores, kept in Redis as\n"
                "Redisson keeps them.\n\n"
                "  --config FILE          Read the keys from this file first.\n");
    for (size_t i = 0; i < sizeof(ACTIONS) / sizeof(ACTIONS[0]); i++) {
        buf_printf(out, "  %-22s %s\n", ACTIONS[i].word, ACTIONS[i].help);
    }
    buf_add_str(out, "\nKeys, here or in the file, and their defaults:\n");
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        buf_printf(out, "  --%-20s %s\n", key->name,
                   key->def[0] == '\0' ? "(none)" : key->def);
    }
    buf_add_str(out,
                "\nThe keys are explained in latchd.conf(5) and by --print-config.\n");
}
