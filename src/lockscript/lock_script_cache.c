#include "lockscript/lock_script_cache.h"

#include "util/alloc.h"
#include "util/recent.h"
#include "util/throttle.h"

#include <stdlib.h>

/* A text that was read: a script, or why it is none. Its key is its SHA1; its time says
 * nothing, only the order counts. */
struct read_text {
    struct recent_item item;
    struct lock_script *script; /* NULL: refused */
    struct lock_script_error error;
};

struct lock_script_cache {
    struct recent scripts, failures;
    struct throttle *users;
};

static void free_script(void *thing)
{
    const struct read_text *text = thing;

    lock_script_free(text->script);
}

/* Finds a text, and makes it the one used last. */
static struct read_text *find_text(struct recent *texts, const char *sha1)
{
    struct span key = span_of(sha1, SHA1_HEX_LEN);

    return recent_find(texts, key) == NULL ? NULL : recent_note(texts, key, 0);
}

struct lock_script_cache *lock_script_cache_new(void)
{
    static const struct throttle_limits TEXTS = { LOCK_SCRIPT_TEXTS_BURST,
                                                  LOCK_SCRIPT_TEXTS_PER_SECOND,
                                                  LOCK_SCRIPT_USERS_MAX };
    struct lock_script_cache *c = xcalloc(1, sizeof(*c));

    recent_init(&c->scripts, sizeof(struct read_text), LOCK_SCRIPTS_MAX);
    recent_init(&c->failures, sizeof(struct read_text), LOCK_SCRIPT_FAILURES_MAX);
    c->scripts.on_drop = free_script;
    c->users = throttle_new(&TEXTS);
    return c;
}

void lock_script_cache_free(struct lock_script_cache *c)
{
    if (c != NULL) {
        recent_fini(&c->scripts);
        recent_fini(&c->failures);
        throttle_free(c->users);
        free(c);
    }
}

/* Reads a text that is new, and keeps what it is. */
static const struct read_text *read_text(struct lock_script_cache *c, struct span text,
                                         const char *sha1)
{
    struct lock_script_error error = { 0 };
    struct lock_script *script = lock_script_parse(text, &error);
    struct read_text *read = recent_note(script == NULL ? &c->failures : &c->scripts,
                                         span_of(sha1, SHA1_HEX_LEN), 0);

    read->script = script;
    read->error = error;
    return read;
}

enum lock_script_load lock_script_cache_load(struct lock_script_cache *c,
                                             struct span user, struct span text,
                                             uint64_t now_ms,
                                             char ret_sha1[SHA1_HEX_LEN + 1],
                                             const struct lock_script **ret,
                                             struct lock_script_error *ret_error)
{
    const struct read_text *read;

    sha1_hex(text, ret_sha1);
    *ret = lock_script_cache_find(c, span_of(ret_sha1, SHA1_HEX_LEN));
    if (*ret != NULL) {
        return LOCK_SCRIPT_LOADED;
    }
    read = find_text(&c->failures, ret_sha1);
    if (read == NULL) {
        if (!throttle_allows(c->users, user, now_ms)) {
            return LOCK_SCRIPT_TOO_MANY;
        }
        throttle_take(c->users, user, now_ms);
        read = read_text(c, text, ret_sha1);
    }
    *ret = read->script;
    *ret_error = read->error;
    return read->script == NULL ? LOCK_SCRIPT_REFUSED : LOCK_SCRIPT_LOADED;
}

const struct lock_script *lock_script_cache_find(struct lock_script_cache *c,
                                                 struct span sha1)
{
    const struct lock_script *known = lock_script_known(sha1);
    const struct read_text *found = NULL;
    char lower[SHA1_HEX_LEN + 1];

    if (known == NULL && sha1_hex_copy(sha1, lower)) {
        found = find_text(&c->scripts, lower);
    }
    return found == NULL ? known : found->script;
}

void lock_script_cache_flush(struct lock_script_cache *c)
{
    recent_clear(&c->scripts);
}

size_t lock_script_cache_count(const struct lock_script_cache *c)
{
    return c->scripts.count;
}

size_t lock_script_cache_failures(const struct lock_script_cache *c)
{
    return c->failures.count;
}
