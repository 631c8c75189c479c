#include "daemon/config.h"

#include "daemon/files.h"
#include "store/place.h"

#include <stdio.h>
#include <string.h>

void config_show(const struct config *c, const struct config_key *key, struct buf *out)
{
    struct buf value = { 0 };

    config_format(c, key, (key->flags & KEY_URLS) != 0 ? &value : out);
    if ((key->flags & KEY_URLS) != 0) {
        buf_add(&value, "", 1);
        store_place_show(buf_ptr(&value), out);
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
    struct buf out;
};

/* A line that sets a known key is replaced, unless it says the same already: then it
 * stays as its author wrote it. */
static bool rewrite_line(struct rewrite *rw, struct span line)
{
    struct buf word = { 0 };
    struct buf value = { 0 };
    char err[CONFIG_ERROR_MAX];
    const struct config_key *key = NULL;
    struct config alone;
    size_t words;
    bool ok = config_parse_line(line, &word, &value, &words, err, sizeof(err));

    if (ok) {
        key = config_key_find(buf_span(&word));
    }
    if (key != NULL) {
        config_init(&alone);
        ok = config_set(&alone, key, buf_span(&value), err, sizeof(err));
        if (ok && config_same(&alone, rw->config, key)) {
            buf_printf(&rw->out, "%.*s\n", (int)line.len, line.ptr);
        } else {
            add_key(rw->config, key, false, &rw->out);
        }
        rw->done[config_key_index(key)] = true;
        config_fini(&alone);
    } else if (ok) {
        buf_printf(&rw->out, "%.*s\n", (int)line.len, line.ptr);
    }
    buf_reset(&word);
    buf_reset(&value);
    return ok;
}

static void rewrite_text(struct rewrite *rw, struct span text)
{
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);

        (void)rewrite_line(rw, span_of(text.ptr, len));
        len += end == NULL ? 0 : 1;
        text = span_of(text.ptr + len, text.len - len);
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        if (!rw->done[i] && !config_is_default(rw->config, key)) {
            add_key(rw->config, key, false, &rw->out);
        }
    }
}

bool config_rewrite(const struct config *c, const char *path, char *reterr, size_t room)
{
    struct rewrite rw = { .config = c };
    struct buf text = { 0 };
    mode_t mode = 0600;
    int err = file_read(path, CONFIG_FILE_MAX, &text, &mode);

    if (err == 0) {
        rewrite_text(&rw, buf_span(&text));
        err = file_replace(path, buf_span(&rw.out), mode);
    }
    if (err != 0) {
        (void)snprintf(reterr, room, "Rewriting config file: %s", strerror(err));
    }
    buf_reset(&text);
    buf_reset(&rw.out);
    return err == 0;
}
