#include "lockscript/lock_script_cache.h"

#include "util/alloc.h"
#include "util/list.h"
#include "util/map.h"
#include "util/throttle.h"

#include <stdlib.h>

/* A text that was read: a script, or why it is none. */
struct read_text {
    UT_hash_handle hh;
    struct list in_order; /* the one used last is the last */
    char sha1[SHA1_HEX_LEN];
    struct lock_script *script; /* NULL: refused */
    struct lock_script_error error;
};

struct text_table {
    struct read_text *by_sha1;
    struct list order;
    size_t most;
};

struct lock_script_cache {
    struct text_table scripts, failures;
    struct throttle *users;
};

static void init_table(struct text_table *t, size_t most)
{
    t->by_sha1 = NULL;
    t->most = most;
    list_init(&t->order);
}

static void remove_text(struct text_table *t, struct read_text *text)
{
    HASH_DEL(t->by_sha1, text);
    list_del(&text->in_order);
    lock_script_free(text->script);
    free(text);
}

static void empty_table(struct text_table *t)
{
    struct list *first;

    while ((first = list_first(&t->order)) != NULL) {
        remove_text(t, container_of(first, struct read_text, in_order));
    }
}

/* Finds a text, and makes it the one used last. */
static struct read_text *find_text(struct text_table *t, const char *sha1)
{
    struct read_text *text = NULL;

    HASH_FIND(hh, t->by_sha1, sha1, SHA1_HEX_LEN, text);
    if (text != NULL) {
        list_del(&text->in_order);
        list_append(&t->order, &text->in_order);
    }
    return text;
}

static void add_text(struct text_table *t, struct read_text *text)
{
    if (HASH_COUNT(t->by_sha1) >= t->most) {
        remove_text(t, container_of(list_first(&t->order), struct read_text, in_order));
    }
    HASH_ADD(hh, t->by_sha1, sha1, SHA1_HEX_LEN, text);
    list_init(&text->in_order);
    list_append(&t->order, &text->in_order);
}

struct lock_script_cache *lock_script_cache_new(void)
{
    static const struct throttle_limits TEXTS = { LOCK_SCRIPT_TEXTS_BURST,
                                                  LOCK_SCRIPT_TEXTS_PER_SECOND,
                                                  LOCK_SCRIPT_USERS_MAX };
    struct lock_script_cache *c = xcalloc(1, sizeof(*c));

    init_table(&c->scripts, LOCK_SCRIPTS_MAX);
    init_table(&c->failures, LOCK_SCRIPT_FAILURES_MAX);
    c->users = throttle_new(&TEXTS);
    return c;
}

void lock_script_cache_free(struct lock_script_cache *c)
{
    if (c != NULL) {
        empty_table(&c->scripts);
        empty_table(&c->failures);
        throttle_free(c->users);
        free(c);
    }
}

/* Reads a text that is new, and keeps what it is. */
static const struct read_text *read_text(struct lock_script_cache *c, struct span text,
                                         const char *sha1)
{
    struct read_text *read = xcalloc(1, sizeof(*read));

    memcpy(read->sha1, sha1, SHA1_HEX_LEN);
    read->script = lock_script_parse(text, &read->error);
    add_text(read->script == NULL ? &c->failures : &c->scripts, read);
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
    empty_table(&c->scripts);
}

size_t lock_script_cache_count(const struct lock_script_cache *c)
{
    return HASH_COUNT(c->scripts.by_sha1);
}

size_t lock_script_cache_failures(const struct lock_script_cache *c)
{
    return HASH_COUNT(c->failures.by_sha1);
}
