/* What became of each request with an ID, so that sending it again cannot do it again.
 */
#include "core/parts.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

enum { KEY_MAX = LATCHD_ID_MAX + 1 + 4096 };

static size_t make_key(char *out, struct span name, struct span id)
{
    memcpy(out, id.ptr, id.len);
    out[id.len] = '\0'; /* ids are printable: no id contains it */
    memcpy(out + id.len + 1, name.ptr, name.len);
    return id.len + 1 + name.len;
}

static struct request *request_in(struct table_node *n)
{
    return container_of(n, struct request, in_requests);
}

static struct span request_key(const struct request *r)
{
    return span_of(r->key, r->key_len);
}

struct request *request_find(const struct locks *l, struct span name, struct span id)
{
    char key[KEY_MAX];
    struct table_node *n = NULL;
    size_t len;

    if (id.len != 0 && id.len <= LATCHD_ID_MAX &&
        name.len <= KEY_MAX - LATCHD_ID_MAX - 1) {
        len = make_key(key, name, id);
        n = table_find(&l->requests, hash_bytes(key, len));
        while (n != NULL && !span_eq(request_key(request_in(n)), span_of(key, len))) {
            n = table_next(n);
        }
    }
    return n == NULL ? NULL : request_in(n);
}

struct request *request_new(struct locks *l, struct span name, const struct want *want)
{
    struct span owner =
        want->kind == OWNER_NAMED ? field_owner(want_field(want)) : SPAN_NONE;
    size_t key_len = want_id(want).len + 1 + name.len;
    struct request *r = xcalloc(1, sizeof(*r) + key_len + owner.len);

    r->key_len = make_key(r->key, name, want_id(want));
    if (owner.len != 0) {
        memcpy(r->key + key_len, owner.ptr, owner.len);
    }
    r->owner = span_of(r->key + key_len, owner.len);
    r->user = want->user;
    r->lock_kind = want->lock_kind;
    r->found = want->found;
    list_init(&r->in_over);
    r->in_requests.key = hash_bytes(r->key, r->key_len);
    table_add(&l->requests, &r->in_requests);
    return r;
}

static void request_free(struct locks *l, struct request *r)
{
    if (r->over_at != NEVER) {
        list_del(&r->in_over);
        l->over_count--;
    }
    table_remove(&l->requests, &r->in_requests);
    free(r);
}

static void arm_over(struct locks *l)
{
    struct list *first = list_first(&l->over);

    if (first == NULL) {
        timer_stop(l, &l->over_timer);
    } else {
        timer_set(l, &l->over_timer, TIMER_OVER,
                  container_of(first, struct request, in_over)->over_at +
                      LATCHD_OVER_MS);
    }
}

void request_over(struct locks *l, struct request *r, int64_t answer)
{
    if (r->over_at != NEVER) {
        return;
    }
    r->over_at = l->now == NEVER ? 1 : l->now;
    r->answer = answer;
    list_append(&l->over, &r->in_over);
    if (++l->over_count > OVER_MAX) {
        request_free(l, container_of(list_first(&l->over), struct request, in_over));
    }
    arm_over(l);
}

void request_idle(struct locks *l, struct request *r)
{
    if (r->waiter == NULL && r->entry == NULL && r->mlock == NULL &&
        r->over_at == NEVER) {
        request_free(l, r);
    }
}

void request_expire(struct locks *l)
{
    struct list *first;

    while ((first = list_first(&l->over)) != NULL) {
        struct request *r = container_of(first, struct request, in_over);

        if (r->over_at + LATCHD_OVER_MS > l->now) {
            break;
        }
        request_free(l, r);
    }
    arm_over(l);
}

void requests_free(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &l->requests)
    {
        request_free(l, request_in(n));
    }
    table_fini(&l->requests);
}
