#include "daemon/config/config.h"

#include "backend/config/backend_config.h"
#include "daemon/files.h"

#include <stdio.h>
#include <string.h>

void config_show(const struct config *c, const struct config_key *key, struct buf *out)
{
    struct buf value = { 0 };

    config_format(c, key, (key->flags & KEY_URLS) != 0 ? &value : out);
    if ((key->flags & KEY_URLS) != 0) {
        buf_add(&value, "", 1);
        backend_config_show(buf_ptr(&value), out);
    }
    buf_reset(&value);
}

static void add_key(const struct config *c, const struct config_key *key, bool shown,
                    struct buf *out)
{
    struct buf value = { 0 };

    if (shown) {
        config_show(c, key, &value);
    } else {
        config_format(c, key, &value);
    }
    buf_printf(out, "%s ", key->name);
    config_quote(buf_span(&value), key->type == KEY_WORDS, out);
    buf_add_str(out, "\n");
    buf_reset(&value);
}

static void add_comment(const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        buf_printf(out, "# %.*s\n", (int)len, text);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

static bool is_shown_whole(const struct config *c, const struct config_key *key)
{
    struct buf shown = { 0 }, value = { 0 };
    bool whole;

    config_show(c, key, &shown);
    config_format(c, key, &value);
    whole = span_eq(buf_span(&shown), buf_span(&value));
    buf_reset(&shown);
    buf_reset(&value);
    return whole;
}

static void print_key(const struct config *c, const struct config_key *key,
                      struct buf *out)
{
    bool changed = !config_is_default(c, key);

    buf_add_str(out, "\n");
    add_comment(key->help, out);
    if ((key->flags & KEY_LIVE) != 0) {
        out->tail--; /* before the newline */
        buf_add_str(out, " [live]\n");
    }
    if (changed && (key->flags & KEY_SECRET) != 0) {
        buf_printf(out, "# %s is set, and not shown here.\n", key->name);
        return;
    }
    if (!is_shown_whole(c, key)) {
        buf_add_str(out, "# Passwords are not shown here:\n#");
    } else {
        buf_add_str(out, changed ? "" : "#");
    }
    add_key(c, key, true, out);
}

void config_print(const struct config *c, struct buf *out)
{
    const char *section = "";

    add_comment(
        "Configuration of latchd, see latchd.conf(5). What is commented out has its\n"
        "default. One key and its value a line; values with spaces in \"quotes\".\n"
        "Times are milliseconds or have a unit: ms, s, m, h, d. Sizes are bytes or\n"
        "have a unit: kb, mb, gb. Keys marked [live] can be changed while latchd\n"
        "runs, with CONFIG SET or by changing this file and sending SIGHUP.",
        out);
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (strcmp(section, CONFIG_KEYS[i].section) != 0) {
            section = CONFIG_KEYS[i].section;
            buf_printf(out, "\n# --- %s ---\n", section);
        }
        print_key(c, &CONFIG_KEYS[i], out);
    }
}

struct rewrite {
    const struct config *config;
    bool done[CONFIG_KEYS_MAX];
    struct buf *out;
};

/* Whether a line parses, and agrees with the configuration. */
static bool is_up_to_date(const struct config *c, const struct config_key *key,
                          struct span value, size_t words)
{
    char err[CONFIG_ERROR_MAX];
    struct config alone = { 0 };
    bool same = (words == 1 || (words > 1 && key->type == KEY_WORDS)) &&
                config_set(&alone, key, value, err, sizeof(err)) &&
                config_same(&alone, c, key);

    config_fini(&alone);
    return same;
}

/* Replaces a line that sets a known key, unless its value is up to date: then it stays
 * as its author wrote it. Lines that could not be read again are dropped: malformed
 * ones, and a second line for a key. */
static void rewrite_line(struct rewrite *rw, struct span line)
{
    struct buf word = { 0 };
    struct buf value = { 0 };
    char err[CONFIG_ERROR_MAX];
    const struct config_key *key = NULL;
    size_t words;
    bool ok = config_parse_line(line, &word, &value, &words, err, sizeof(err));

    if (ok) {
        key = config_key_find(buf_span(&word));
    }
    if (ok &&
        (key == NULL || (!rw->done[config_key_index(key)] &&
                         is_up_to_date(rw->config, key, buf_span(&value), words)))) {
        buf_add_span(rw->out, line);
        buf_add_str(rw->out, "\n");
    } else if (key != NULL && !rw->done[config_key_index(key)]) {
        add_key(rw->config, key, false, rw->out);
    }
    if (key != NULL) {
        rw->done[config_key_index(key)] = true;
    }
    buf_reset(&word);
    buf_reset(&value);
}

void config_rewrite_text(const struct config *c, struct span text, struct buf *out)
{
    struct rewrite rw = { .config = c, .out = out };

    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);

        rewrite_line(&rw, span_of(text.ptr, len));
        text = span_after(text, len + (end == NULL ? 0 : 1));
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        if (!rw.done[i] && !config_is_default(c, key)) {
            add_key(c, key, false, out);
        }
    }
}

bool config_rewrite(const struct config *c, const char *path, char *reterr, size_t room)
{
    struct buf text = { 0 }, out = { 0 };
    mode_t mode = 0600;
    int err = file_read(path, CONFIG_FILE_MAX, &text, &mode);

    if (err == 0) {
        config_rewrite_text(c, buf_span(&text), &out);
        err = file_replace(path, buf_span(&out), mode);
    }
    if (err != 0) {
        (void)snprintf(reterr, room, "Rewriting config file: %s", strerror(err));
    }
    buf_reset(&text);
    buf_reset(&out);
    return err == 0;
}
