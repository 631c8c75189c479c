#include "daemon/config/config.h"

#include "backend/config/backend_config.h"
#include "util/alloc.h"
#include "util/edits.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void *field_of(const struct config *c, const struct config_key *key)
{
    return (char *)(uintptr_t)c + key->field;
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

const struct config_key *config_key_guess(struct span name)
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
    *(uint64_t *)field_of(c, key) = number;
    return true;
}

static bool set_choice(struct config *c, const struct config_key *key,
                       struct span value, char *reterr, size_t room)
{
    size_t len;

    for (uint64_t i = 0; key->choices[i] != NULL; i++) {
        if (span_eq_nocase(value, span_str(key->choices[i]))) {
            *(uint64_t *)field_of(c, key) = i;
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
            *(int64_t *)field_of(c, key) = -1;
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
    const void *field = field_of(c, key);

    if (is_text(key)) {
        buf_add_str(out, *(char *const *)field);
    } else if (key->type == KEY_CHOICE) {
        buf_add_str(out, key->choices[*(const uint64_t *)field]);
    } else if (may_be_minus_one(key) && *(const int64_t *)field < 0) {
        buf_add_int(out, *(const int64_t *)field);
    } else {
        format_number(key->type, *(const uint64_t *)field, out);
    }
}

bool config_same(const struct config *a, const struct config *b,
                 const struct config_key *key)
{
    const void *x = field_of(a, key);
    const void *y = field_of(b, key);

    if (is_text(key)) {
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    }
    return *(const uint64_t *)x == *(const uint64_t *)y;
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
