/* The outcome of each request with an ID, so that sending it again cannot do it again.
 */
#include "engine/request.h"
#include "engine/engine_priv.h"

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

static struct span request_key(const struct request *request)
{
    return span_of(request->key, request->key_len);
}

struct request *request_find(const struct engine *eng, struct span name, struct span id)
{
    char key[KEY_MAX];
    struct table_node *n = NULL;
    size_t len;

    if (id.len != 0 && id.len <= LATCHD_ID_MAX &&
        name.len <= KEY_MAX - LATCHD_ID_MAX - 1) {
        len = make_key(key, name, id);
        n = table_find(&eng->requests, hash_bytes(key, len));
        while (n != NULL && !span_eq(request_key(request_in(n)), span_of(key, len))) {
            n = table_next(n);
        }
    }
    return n == NULL ? NULL : request_in(n);
}

struct request *request_new(struct engine *eng, struct span name,
                            const struct acquire_spec *spec)
{
    struct span owner =
        spec->owner_kind == OWNER_NAMED ? field_owner(spec_field(spec)) : SPAN_NONE;
    size_t key_len = spec_id(spec).len + 1 + name.len;
    struct request *request = xcalloc(1, sizeof(*request) + key_len + owner.len);

    request->key_len = make_key(request->key, name, spec_id(spec));
    if (owner.len != 0) {
        memcpy(request->key + key_len, owner.ptr, owner.len);
    }
    request->owner = span_of(request->key + key_len, owner.len);
    request->user = spec->terms.user;
    request->lock_kind = spec->terms.lock_kind;
    request->found = spec->found;
    list_init(&request->in_over);
    request->in_requests.key = hash_bytes(request->key, request->key_len);
    table_add(&eng->requests, &request->in_requests);
    return request;
}

static void request_free(struct engine *eng, struct request *request)
{
    if (request->over_at != NEVER) {
        list_del(&request->in_over);
        eng->over_count--;
    }
    table_remove(&eng->requests, &request->in_requests);
    free(request);
}

static void arm_over(struct engine *eng)
{
    struct list *first = list_first(&eng->over);

    if (first == NULL) {
        timer_stop(eng, &eng->over_timer);
    } else {
        timer_set(eng, &eng->over_timer, TIMER_OVER,
                  container_of(first, struct request, in_over)->over_at +
                      LATCHD_OVER_MS);
    }
}

void request_over(struct engine *eng, struct request *request, int64_t answer)
{
    if (request->over_at != NEVER) {
        return;
    }
    request->over_at = eng->now == NEVER ? 1 : eng->now;
    request->answer = answer;
    list_append(&eng->over, &request->in_over);
    if (++eng->over_count > OVER_MAX) {
        request_free(eng,
                     container_of(list_first(&eng->over), struct request, in_over));
    }
    arm_over(eng);
}

void request_idle(struct engine *eng, struct request *request)
{
    if (request->waiter == NULL && request->entry == NULL && request->mlock == NULL &&
        request->over_at == NEVER) {
        request_free(eng, request);
    }
}

void request_expire(struct engine *eng)
{
    struct request *request;

    while (LIST_FIRST(request, &eng->over, in_over)) {
        if (request->over_at + LATCHD_OVER_MS > eng->now) {
            break;
        }
        request_free(eng, request);
    }
    arm_over(eng);
}

void requests_free(struct engine *eng)
{
    struct request *request;

    TABLE_EACH(request, &eng->requests, in_requests) {
        request_free(eng, request);
    }
    table_fini(&eng->requests);
}
