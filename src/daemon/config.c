#include "daemon/config.h"

#include "backend/backend_config.h"
#include "daemon/files.h"
#include "engine/op.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_replicas_of_embedded(const struct config *c)
{
    return c->store.min_replicas > 0 && strcmp(c->redis, "embedded") == 0;
}

static bool has_password_for_embedded(const struct config *c)
{
    return c->redis_password_file[0] != '\0' && strcmp(c->redis, "embedded") == 0;
}

static bool wants_replicas_of_quorum(const struct config *c)
{
    return c->store.min_replicas > 0 && backend_config_is_quorum(c->redis);
}

static bool wants_api_without_port(const struct config *c)
{
    return c->http_api && c->http_port == 0;
}

static bool has_bad_traces_url(const struct config *c)
{
    struct traces_url url;

    return c->traces.url[0] != '\0' && !traces_url_parse(c->traces.url, &url);
}

const struct config_conflict CONFIG_CONFLICTS[] = {
    { "min-replicas", "the embedded Redis has no replicas",
      wants_replicas_of_embedded },
    { "redis-password-file", "the embedded Redis needs no password",
      has_password_for_embedded },
    { "min-replicas", "on a quorum a majority is what acknowledges",
      wants_replicas_of_quorum },
    { "http-api", "it needs http-port", wants_api_without_port },
    { "traces-url", "must be a URL such as http://localhost:4318/v1/traces",
      has_bad_traces_url },
};

const size_t CONFIG_CONFLICT_COUNT =
    sizeof(CONFIG_CONFLICTS) / sizeof(CONFIG_CONFLICTS[0]);

const struct config_conflict *config_find_conflict(const struct config *c)
{
    for (size_t i = 0; i < CONFIG_CONFLICT_COUNT; i++) {
        if (CONFIG_CONFLICTS[i].is_in(c)) {
            return &CONFIG_CONFLICTS[i];
        }
    }
    return NULL;
}

#define MINUTES 60000ULL
#define HOURS (60 * MINUTES)
#define DAYS (24 * HOURS)
#define KB 1024ULL
#define GB (KB * KB * KB)
#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

static const char *const FSYNCS[] = { "everysec", "always", NULL };
static const char *const AUTHS[] = { "no", "yes", "optional", NULL };
static const char *const CERT_USERS[] = { "off", "cn", NULL };
static const char *const YES_NO[] = { "no", "yes", NULL };
static const char *const LEVELS[] = { "debug",   "info",  "notice",
                                      "warning", "error", NULL };
static const char *const FORMATS[] = { "text", "json", NULL };

static const char NETWORK[] = "Network";
static const char TLS[] = "TLS";
static const char REDIS[] = "Redis";
static const char LOCKS[] = "Locks";
static const char SECURITY[] = "Security";
static const char OBSERVING[] = "Observing";
static const char HTTP[] = "Metrics and status page";
static const char LOGGING[] = "Log";

/* Keys whose user is a part below have the field in that part's struct. */
#define ROW(section_, name_, type_, field_, def_, min_, max_, choices_, flags_, help_) \
    { .name = (name_),                                                                 \
      .type = (type_),                                                                 \
      .field = offsetof(struct config, field_),                                        \
      .size = sizeof(((struct config *)NULL)->field_),                                 \
      .def = (def_),                                                                   \
      .min = (min_),                                                                   \
      .max = (max_),                                                                   \
      .choices = (choices_),                                                           \
      .flags = (flags_),                                                               \
      .section = (section_),                                                           \
      .help = (help_) },
#define KEY(section_, name_, type_, field_, def_, min_, max_, flags_, help_)           \
    ROW(section_, name_, type_, field_, def_, min_, max_, NULL, flags_, help_)
#define CHOICE(section_, name_, words_, field_, def_, flags_, help_)                   \
    ROW(section_, name_, KEY_CHOICE, field_, def_, 0, 0, words_, flags_, help_)

const struct config_key CONFIG_KEYS[] = {
#include "daemon/config.def"
};

#undef ROW
#undef KEY
#undef CHOICE

const size_t CONFIG_KEY_COUNT = sizeof(CONFIG_KEYS) / sizeof(CONFIG_KEYS[0]);
const char CONFIG_VARIABLES[] = "LATCHD_";
_Static_assert(sizeof(CONFIG_KEYS) / sizeof(CONFIG_KEYS[0]) <= CONFIG_KEYS_MAX,
               "CONFIG_KEYS_MAX is too small");

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

/* Parses one line into a key and its value: quotes and escapes are undone, words
 * joined by one space. True with an empty *ret_key: a comment or blank line. */
static bool config_parse_line(struct span line, struct buf *ret_key,
                              struct buf *ret_value, size_t *ret_words, char *reterr,
                              size_t room)
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

/* The key that an unknown name probably means; NULL: no guess. */
static const struct config_key *config_key_guess(struct span name)
{
    const struct config_key *best = NULL;
    size_t nearest =
        name.len < 6 ? 2 : name.len / 3 + 1; /* words that differ more are no guess */

    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        size_t edits = edits_between(name, span_str(CONFIG_KEYS[i].name));

        if (edits < nearest) {
            nearest = edits;
            best = &CONFIG_KEYS[i];
        }
    }
    return best;
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

/* Appends a value, quoted if necessary. */
static void config_quote(struct span value, bool words, struct buf *out)
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

enum { VARIABLE_NAME_MAX = 64 };

/* Writes the name of a key's variable: LATCHD_REDIS_TIMEOUT. */
static void variable_name(const struct config_key *key, char *ret, size_t room)
{
    (void)snprintf(ret, room, "%s%s", CONFIG_VARIABLES, key->name);
    for (char *ch = ret; *ch != '\0'; ch++) {
        *ch = *ch == '-' ? '_' : (char)toupper((unsigned char)*ch);
    }
}

bool config_is_in_environment(const struct config_key *key)
{
    char name[VARIABLE_NAME_MAX];
    const char *value;

    variable_name(key, name, sizeof(name));
    value = getenv(name);
    return value != NULL && value[0] != '\0';
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
 * as its author wrote it. The environment's values, which may be secrets, do not go
 * into the file. Lines that could not be read again are dropped: malformed
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
                         (config_is_in_environment(key) ||
                          is_up_to_date(rw->config, key, buf_span(&value), words))))) {
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

        if (!rw.done[i] && !config_is_default(c, key) &&
            !config_is_in_environment(key)) {
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

static void *field_of(const struct config *c, const struct config_key *key)
{
    return (char *)(uintptr_t)c + key->field;
}

/* Fields of numbers are uint64_t, int64_t, an enum, unsigned or bool. */
static uint64_t number_of(const struct config *c, const struct config_key *key)
{
    const void *field = field_of(c, key);

    switch (key->size) {
    case sizeof(uint64_t):
        return *(const uint64_t *)field;
    case sizeof(unsigned):
        return *(const unsigned *)field;
    case sizeof(bool):
        return *(const bool *)field;
    default:
        abort();
    }
}

static void set_number_of(struct config *c, const struct config_key *key,
                          uint64_t number)
{
    void *field = field_of(c, key);

    switch (key->size) {
    case sizeof(uint64_t):
        *(uint64_t *)field = number;
        break;
    case sizeof(unsigned):
        *(unsigned *)field = (unsigned)number;
        break;
    case sizeof(bool):
        *(bool *)field = number != 0;
        break;
    default:
        abort();
    }
}

static bool is_text(const struct config_key *key)
{
    return key->type == KEY_TEXT || key->type == KEY_WORDS;
}

const struct config_key *config_key_find(struct span name)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (span_eq_nocase(name, span_str(CONFIG_KEYS[i].name))) {
            return &CONFIG_KEYS[i];
        }
    }
    return NULL;
}

size_t config_key_index(const struct config_key *key)
{
    return (size_t)(key - CONFIG_KEYS);
}

/* Sets one key to its default. */
static void set_default(struct config *c, const struct config_key *key)
{
    char err[CONFIG_ERROR_MAX];

    /* A default outside its own bounds is a mistake in the table. */
    if (!config_set(c, key, span_str(key->def), err, sizeof(err))) {
        abort();
    }
}

void config_init(struct config *c)
{
    memset(c, 0, sizeof(*c));
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        set_default(c, &CONFIG_KEYS[i]);
    }
}

void config_fini(struct config *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (is_text(&CONFIG_KEYS[i])) {
            char **text = field_of(c, &CONFIG_KEYS[i]);

            free(*text);
            *text = NULL;
        }
    }
}

void config_copy(struct config *to, const struct config *from)
{
    *to = *from;
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (is_text(&CONFIG_KEYS[i])) {
            char **text = field_of(to, &CONFIG_KEYS[i]);

            *text = xstrdup(*text);
        }
    }
}

void config_derive(struct config *c)
{
    uint64_t keepalive_s = (c->tcp_keepalive_ms + 999) / 1000;

    /* The answer that extends a lease waits for replicas, too. */
    c->engine.redis_timeout_ms =
        c->store.timeout_ms +
        (c->store.min_replicas > 0 ? c->store.replica_timeout_ms : 0);
    c->engine.long_hold_ms = c->traces.url[0] == '\0' ? 0 : c->traces.min_ms;
    c->engine.long_wait_ms = c->long_wait_ms < 0 ? 0 : (uint64_t)c->long_wait_ms;
    if (c->engine.long_wait_ms == 0 ||
        (c->engine.long_hold_ms != 0 &&
         c->engine.long_hold_ms < c->engine.long_wait_ms)) {
        c->engine.long_wait_ms = c->engine.long_hold_ms;
    }
    c->engine.quarantine_ms =
        c->quarantine_ms < 0 ? c->engine.watchdog_ms : (uint64_t)c->quarantine_ms;
    c->store.quarantine_ms = c->engine.quarantine_ms;
    c->cmd.watchdog_ms = c->engine.watchdog_ms;
    c->cmd.endless_lease_ms = c->engine.endless_lease_ms;
    c->cmd.one_tag = config_is_cluster(c);
    c->cmd.database = backend_config_database(c->redis);
    c->net.stream.keepalive_s = keepalive_s;
    /* As long as the probes take, so that unacknowledged data ends the connection at
     * the same time. */
    c->net.stream.user_timeout_ms = keepalive_s == 0 ? 0 : (keepalive_s + 9) * 1000;
}

static bool may_be_minus_one(const struct config_key *key)
{
    return key->type == KEY_GRACE || key->type == KEY_USEC;
}

static void format_msec(uint64_t ms, struct buf *out)
{
    static const struct {
        uint64_t ms;
        const char *unit;
    } UNITS[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
    size_t i = 0;

    if (ms == 0) {
        buf_add_str(out, "0");
        return;
    }
    while (ms % UNITS[i].ms != 0) {
        i++;
    }
    buf_printf(out, "%" PRIu64 "%s", ms / UNITS[i].ms, UNITS[i].unit);
}

static void format_size(uint64_t bytes, struct buf *out)
{
    static const char *const UNITS[] = { "", "kb", "mb", "gb" };
    size_t i = 0;

    while (bytes != 0 && bytes % 1024 == 0 && i < 3) {
        bytes /= 1024;
        i++;
    }
    buf_printf(out, "%" PRIu64 "%s", bytes, UNITS[i]);
}

static void format_number(enum config_type type, uint64_t value, struct buf *out)
{
    switch (type) {
    case KEY_MSEC:
    case KEY_GRACE:
        format_msec(value, out);
        return;
    case KEY_SIZE:
        format_size(value, out);
        return;
    case KEY_OCTAL:
        buf_printf(out, "%" PRIo64, value);
        return;
    case KEY_PORT:
        if (value == CONFIG_PORT_AUTO) {
            buf_add_str(out, "auto");
            return;
        }
        buf_printf(out, "%" PRIu64, value);
        return;
    default:
        buf_printf(out, "%" PRIu64, value);
        return;
    }
}

static bool bad_bounds(const struct config_key *key, char *reterr, size_t room)
{
    struct buf text = { 0 };

    buf_add_str(&text, "must be between ");
    format_number(key->type, key->min, &text);
    buf_add_str(&text, " and ");
    format_number(key->type, key->max, &text);
    if (may_be_minus_one(key)) {
        buf_add_str(&text, ", or -1");
    }
    (void)snprintf(reterr, room, "%.*s", (int)buf_len(&text), buf_ptr(&text));
    buf_reset(&text);
    return false;
}

static bool parse_octal(struct span text, uint64_t *ret)
{
    uint64_t value = 0;

    if (text.len == 0 || text.len > 5) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7') {
            return false;
        }
        value = value * 8 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret = value;
    return true;
}

static bool set_number(struct config *c, const struct config_key *key,
                       struct span value, char *reterr, size_t room)
{
    const char *what = "a number";
    uint64_t number = 0;
    bool ok;

    switch (key->type) {
    case KEY_MSEC:
    case KEY_GRACE:
        what = "milliseconds, or a number with ms, s, m, h or d";
        ok = parse_msec(value, &number);
        break;
    case KEY_SIZE:
        what = "bytes, or a number with kb, mb or gb";
        ok = parse_size(value, &number);
        break;
    case KEY_USEC:
        what = "microseconds";
        ok = parse_u64(value, UINT64_MAX, &number);
        break;
    case KEY_OCTAL:
        what = "an octal number";
        ok = parse_octal(value, &number);
        break;
    case KEY_PORT:
        what = "a port, or auto";
        number = CONFIG_PORT_AUTO;
        ok = span_eq_nocase(value, SPAN("auto")) ||
             parse_u64(value, CONFIG_PORT_AUTO - 1, &number);
        break;
    default:
        ok = parse_u64(value, UINT64_MAX, &number);
        break;
    }
    if (!ok) {
        (void)snprintf(reterr, room, "must be %s%s", what,
                       may_be_minus_one(key) ? ", or -1" : "");
        return false;
    }
    if (number < key->min || number > key->max) {
        return bad_bounds(key, reterr, room);
    }
    set_number_of(c, key, number);
    return true;
}

static bool set_choice(struct config *c, const struct config_key *key,
                       struct span value, char *reterr, size_t room)
{
    size_t len;

    for (uint64_t i = 0; key->choices[i] != NULL; i++) {
        if (span_eq_nocase(value, span_str(key->choices[i]))) {
            set_number_of(c, key, i);
            return true;
        }
    }
    len = (size_t)snprintf(reterr, room, "must be one of:");
    for (size_t i = 0; key->choices[i] != NULL && len < room; i++) {
        len += (size_t)snprintf(reterr + len, room - len, " %s", key->choices[i]);
    }
    return false;
}

static bool set_text(struct config *c, const struct config_key *key, struct span value,
                     char *reterr, size_t room)
{
    char **text = field_of(c, key);

    if (value.len != 0 && memchr(value.ptr, '\0', value.len) != NULL) {
        (void)snprintf(reterr, room, "must not contain a NUL byte");
        return false;
    }
    if (value.len < key->min) {
        (void)snprintf(reterr, room, "must not be empty");
        return false;
    }
    if (value.len > key->max) {
        (void)snprintf(reterr, room, "must not be longer than %" PRIu64 " bytes",
                       key->max);
        return false;
    }
    free(*text);
    *text = xmemdup0(value.ptr, value.len);
    return true;
}

bool config_set(struct config *c, const struct config_key *key, struct span value,
                char *reterr, size_t room)
{
    switch (key->type) {
    case KEY_CHOICE:
        return set_choice(c, key, value, reterr, room);
    case KEY_TEXT:
    case KEY_WORDS:
        return set_text(c, key, value, reterr, room);
    case KEY_GRACE:
    case KEY_USEC:
        if (span_eq(value, SPAN("-1"))) {
            set_number_of(c, key, UINT64_MAX); /* -1 */
            return true;
        }
        return set_number(c, key, value, reterr, room);
    default:
        return set_number(c, key, value, reterr, room);
    }
}

void config_format(const struct config *c, const struct config_key *key,
                   struct buf *out)
{
    if (is_text(key)) {
        buf_add_str(out, *(char *const *)field_of(c, key));
    } else if (key->type == KEY_CHOICE) {
        buf_add_str(out, key->choices[number_of(c, key)]);
    } else if (may_be_minus_one(key) && number_of(c, key) == UINT64_MAX) {
        buf_add_str(out, "-1");
    } else {
        format_number(key->type, number_of(c, key), out);
    }
}

bool config_same(const struct config *a, const struct config *b,
                 const struct config_key *key)
{
    if (is_text(key)) {
        return strcmp(*(char *const *)field_of(a, key),
                      *(char *const *)field_of(b, key)) == 0;
    }
    return number_of(a, key) == number_of(b, key);
}

bool config_is_default(const struct config *c, const struct config_key *key)
{
    struct config fresh = { 0 };
    bool same;

    set_default(&fresh, key);
    same = config_same(c, &fresh, key);
    config_fini(&fresh);
    return same;
}

static char *join_path(const char *a, const char *b)
{
    struct buf text = { 0 };
    char *ret;

    buf_add_str(&text, a);
    buf_add_str(&text, b);
    ret = xmemdup0(buf_ptr(&text), buf_len(&text));
    buf_reset(&text);
    return ret;
}

static const char *env_path(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

char *config_state_dir(const struct config *c)
{
    const char *systemd = env_path("STATE_DIRECTORY");
    const char *state = env_path("XDG_STATE_HOME"), *home = env_path("HOME");

    if (c->state_dir[0] != '\0') {
        return xstrdup(c->state_dir);
    }
    if (systemd != NULL) {
        /* systemd separates several directories with colons; the first is ours. */
        return xmemdup0(systemd, strcspn(systemd, ":"));
    }
    if (state != NULL) {
        return join_path(state, "/latchd");
    }
    if (home != NULL) {
        return join_path(home, "/.local/state/latchd");
    }
    return NULL;
}

bool config_is_cluster(const struct config *c)
{
    return backend_config_is_cluster(c->redis);
}

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
    { "--help", OPTIONS_HELP, "Print this help." },
    { "--version", OPTIONS_VERSION, "Print the version." },
    { "--print-config", OPTIONS_PRINT_CONFIG, "Print the configuration, commented." },
    { "--check-config", OPTIONS_CHECK_CONFIG,
      "Check the configuration, and print each mistake." },
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

static bool fail_unknown_option(struct reader *r, int len, const char *word)
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
        return fail_unknown_option(r, len, word);
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

/* Variables of no key belong to other programs, such as LATCHD_URL to latchctl, unless
 * one is a misspelt key. */
static bool is_misspelt(const char *variable, size_t len, char *reterr, size_t room)
{
    size_t prefix = strlen(CONFIG_VARIABLES);
    const struct config_key *guess =
        config_key_guess(span_of(variable + prefix, len - prefix));
    char name[VARIABLE_NAME_MAX];

    if (guess == NULL) {
        return false;
    }
    variable_name(guess, name, sizeof(name));
    (void)snprintf(reterr, room, "%.*s: there is no such key, did you mean %s?",
                   (int)len, variable, name);
    return true;
}

/* Applies one variable of the environment: NAME=VALUE. An empty value counts as none,
 * as container tools pass on variables that are not set. */
static bool read_variable(struct config *c, const char *variable, char *reterr,
                          size_t room)
{
    const char *value = strchr(variable, '=');
    size_t len = value == NULL ? 0 : (size_t)(value - variable);
    char name[VARIABLE_NAME_MAX], why[CONFIG_ERROR_MAX / 2];

    if (strncmp(variable, CONFIG_VARIABLES, strlen(CONFIG_VARIABLES)) != 0 ||
        value == NULL || value[1] == '\0') {
        return true;
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        variable_name(&CONFIG_KEYS[i], name, sizeof(name));
        if (strlen(name) != len || memcmp(name, variable, len) != 0) {
            continue;
        }
        if (!config_set(c, &CONFIG_KEYS[i], span_str(value + 1), why, sizeof(why))) {
            (void)snprintf(reterr, room, "%s: %s", name, why);
            return false;
        }
        return true;
    }
    return !is_misspelt(variable, len, reterr, room);
}

static bool read_environment(struct config *c, struct buf *mistakes)
{
    char err[CONFIG_ERROR_MAX];
    bool ok = true;

    for (char **variable = environ; *variable != NULL; variable++) {
        if (!read_variable(c, *variable, err, sizeof(err))) {
            buf_printf(mistakes, "%s\n", err);
            ok = false;
        }
    }
    return ok;
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
    ok = read_environment(ret, mistakes) && ok;
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
                "  --config FILE          Read the keys from this file first; default: "
                "no file.\n");
    for (size_t i = 0; i < sizeof(ACTIONS) / sizeof(ACTIONS[0]); i++) {
        buf_printf(out, "  %-22s %s\n", ACTIONS[i].word, ACTIONS[i].help);
    }
    buf_add_str(
        out,
        "\nKeys and their defaults; --print-config and latchd.conf(5) explain them:\n");
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        buf_printf(out, "  --%-20s %s\n", key->name,
                   key->def[0] == '\0' ? "(none)" : key->def);
    }
    buf_add_str(out,
                "\nA key can stand in the file (redis-timeout 5s), in the environment\n"
                "(LATCHD_REDIS_TIMEOUT=5s), or here. The environment overrides the "
                "file, and the\n"
                "command line overrides both.\n");
}
