#include "daemon/config/config.h"

#include "daemon/files.h"
#include "util/parse.h"

#include <stdio.h>
#include <string.h>

static bool is_space(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r';
}

/* Reads an escape after the backslash at *at. False: there is no such escape. */
static bool unescape_char(struct span line, size_t *at, char *ret)
{
    static const char FROM[] = "nrt\"\\";
    static const char TO[] = "\n\r\t\"\\";
    char ch = *at < line.len ? line.ptr[*at] : '\0';
    const char *found = ch == '\0' ? NULL : strchr(FROM, ch);

    if (found != NULL) {
        *ret = TO[found - FROM];
        (*at)++;
        return true;
    }
    if (ch == 'x' && *at + 2 < line.len) {
        int byte = parse_hex_byte(line.ptr[*at + 1], line.ptr[*at + 2]);

        *ret = (char)byte;
        *at += 3;
        return byte >= 0;
    }
    return false;
}

static const char *quoted_word(struct span line, size_t *at, struct buf *out)
{
    (*at)++;
    while (*at < line.len && line.ptr[*at] != '"') {
        char ch = line.ptr[(*at)++];

        if (ch == '\\' && !unescape_char(line, at, &ch)) {
            return "unknown escape in quotes (there are \\\" \\\\ \\n \\r \\t \\xHH)";
        }
        buf_add(out, &ch, 1);
    }
    if (*at == line.len) {
        return "a quote is not closed";
    }
    (*at)++;
    if (*at < line.len && !is_space(line.ptr[*at])) {
        return "a space is missing after a closing quote";
    }
    return NULL;
}

/* Appends the next word. Returns NULL, or the error. */
static const char *next_word(struct span line, size_t *at, struct buf *out)
{
    if (line.ptr[*at] == '"') {
        return quoted_word(line, at, out);
    }
    while (*at < line.len && !is_space(line.ptr[*at])) {
        if (line.ptr[*at] == '"') {
            return "a quote inside a word";
        }
        buf_add(out, line.ptr + *at, 1);
        (*at)++;
    }
    return NULL;
}

static bool skip_to_word(struct span line, size_t *at)
{
    while (*at < line.len && is_space(line.ptr[*at])) {
        (*at)++;
    }
    return *at < line.len && line.ptr[*at] != '#';
}

bool config_parse_line(struct span line, struct buf *ret_key, struct buf *ret_value,
                       size_t *ret_words, char *reterr, size_t room)
{
    const char *wrong = NULL;
    size_t at = 0;

    buf_clear(ret_key);
    buf_clear(ret_value);
    *ret_words = 0;
    if (skip_to_word(line, &at)) {
        wrong = next_word(line, &at, ret_key);
    }
    while (wrong == NULL && skip_to_word(line, &at)) {
        if (*ret_words > 0) {
            buf_add(ret_value, " ", 1);
        }
        wrong = next_word(line, &at, ret_value);
        (*ret_words)++;
    }
    if (wrong == NULL && buf_len(ret_key) == 0 && *ret_words > 0) {
        wrong = "the key is empty";
    }
    if (wrong != NULL) {
        (void)snprintf(reterr, room, "%s", wrong);
        return false;
    }
    return true;
}

struct parse_state {
    struct config *config;
    bool seen[CONFIG_KEYS_MAX];
    struct buf key;
    struct buf value;
};

/* The length of an unknown key in a message, bounded. */
static int shown_len(const struct buf *key)
{
    return buf_len(key) < 64 ? (int)buf_len(key) : 64;
}

/* Bytes that are no text become question marks, as in the log. */
static bool fail_unknown(const struct buf *key, char *reterr, size_t room)
{
    const struct config_key *guess = config_key_guess(buf_span(key));
    int len =
        snprintf(reterr, room, "unknown key '%.*s'", shown_len(key), buf_ptr(key));

    for (char *ch = reterr; *ch != '\0'; ch++) {
        *ch = (unsigned char)*ch < 0x20 || *ch == 0x7f ? '?' : *ch;
    }
    if (guess != NULL && len > 0 && (size_t)len < room) {
        (void)snprintf(reterr + len, room - (size_t)len, ", did you mean '%s'?",
                       guess->name);
    }
    return false;
}

static bool parse_one(struct parse_state *p, struct span line, char *reterr,
                      size_t room)
{
    char why[CONFIG_ERROR_MAX / 2];
    const struct config_key *key;
    size_t words;

    if (!config_parse_line(line, &p->key, &p->value, &words, reterr, room)) {
        return false;
    }
    if (buf_len(&p->key) == 0) {
        return true;
    }
    key = config_key_find(buf_span(&p->key));
    if (key == NULL) {
        return fail_unknown(&p->key, reterr, room);
    }
    if (p->seen[config_key_index(key)]) {
        (void)snprintf(reterr, room, "%s is there twice", key->name);
        return false;
    }
    p->seen[config_key_index(key)] = true;
    if (words == 0 || (words > 1 && key->type != KEY_WORDS)) {
        (void)snprintf(reterr, room, "%s: %s", key->name,
                       words == 0 ? "the value is missing"
                                  : "one value is wanted (quote it if it has spaces)");
        return false;
    }
    if (!config_set(p->config, key, buf_span(&p->value), why, sizeof(why))) {
        (void)snprintf(reterr, room, "%s: %s", key->name, why);
        return false;
    }
    return true;
}

bool config_parse(struct config *c, const char *name, struct span text,
                  struct buf *mistakes)
{
    struct parse_state p = { .config = c };
    char why[CONFIG_ERROR_MAX];
    unsigned number = 0;
    unsigned wrong = 0;

    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);

        number++;
        if (!parse_one(&p, span_of(text.ptr, len), why, sizeof(why)) &&
            wrong++ < CONFIG_MISTAKES_MAX) {
            buf_printf(mistakes, "%s:%u: %s\n", name, number, why);
        }
        len += end == NULL ? 0 : 1;
        text = span_of(text.ptr + len, text.len - len);
    }
    if (wrong > CONFIG_MISTAKES_MAX) {
        buf_printf(mistakes, "%s: and %u more\n", name, wrong - CONFIG_MISTAKES_MAX);
    }
    buf_reset(&p.key);
    buf_reset(&p.value);
    return wrong == 0;
}

bool config_load(struct config *c, const char *path, struct buf *mistakes)
{
    struct buf text = { 0 };
    int err = file_read(path, CONFIG_FILE_MAX, &text, NULL);
    bool ok = false;

    if (err != 0) {
        buf_printf(mistakes, "%s: %s\n", path, strerror(err));
    } else {
        ok = config_parse(c, path, buf_span(&text), mistakes);
    }
    buf_reset(&text);
    return ok;
}

/* Whether a value needs no quotes. Words are joined by one space, so several spaces,
 * or what looks like a comment, would be lost. */
static bool is_plain(struct span value, bool words)
{
    char last = ' ';

    for (size_t i = 0; i < value.len; i++) {
        unsigned char ch = (unsigned char)value.ptr[i];

        if (ch == '"' || ch < 0x20 || ch == 0x7f || (ch == ' ' && !words) ||
            (last == ' ' && (ch == ' ' || ch == '#'))) {
            return false;
        }
        last = (char)ch;
    }
    return last != ' ';
}

void config_quote(struct span value, bool words, struct buf *out)
{
    if (is_plain(value, words)) {
        buf_add_span(out, value);
        return;
    }
    buf_add_str(out, "\"");
    for (size_t i = 0; i < value.len; i++) {
        unsigned char ch = (unsigned char)value.ptr[i];

        if (ch == '"' || ch == '\\') {
            buf_printf(out, "\\%c", ch);
        } else if (ch < 0x20 || ch == 0x7f) {
            buf_printf(out, "\\x%02x", ch);
        } else {
            buf_add(out, &value.ptr[i], 1);
        }
    }
    buf_add_str(out, "\"");
}
