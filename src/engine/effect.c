#include "engine/effect.h"

#include "util/alloc.h"

#include <stdalign.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES = 64 * 1024,
    CHUNKS_SPARE = ALLOC_KEEPS ? 4 : 0, /* kept from turn to turn */
};

struct chunk {
    struct chunk *next;
    size_t used;
    size_t room;
    alignas(max_align_t) char data[];
};

const char *lease_kind_name(enum lease_kind kind)
{
    static const char *const NAMES[] = {
        [LEASE_WATCHDOG] = "watchdog",
        [LEASE_FIXED] = "fixed",
        [LEASE_ENDLESS] = "endless",
    };

    return NAMES[kind];
}

void effects_init(struct effects *fx)
{
    *fx = (struct effects){ 0 };
}

static void drop_chunks(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
}

void effects_fini(struct effects *fx)
{
    drop_chunks(fx->chunks);
    drop_chunks(fx->spare);
    free(fx->list);
    *fx = (struct effects){ 0 };
}

void effects_reset(struct effects *fx)
{
    struct chunk **at = &fx->chunks;

    fx->count = 0;
    if (fx->chunks == NULL) {
        return;
    }
    for (int i = 0; i < CHUNKS_SPARE && *at != NULL; i++) {
        at = &(*at)->next;
    }
    drop_chunks(*at);
    *at = NULL;
    drop_chunks(fx->spare);
    fx->spare = fx->chunks;
    fx->chunks = NULL;
}

static struct chunk *new_chunk(struct effects *fx, size_t bytes)
{
    struct chunk *chunk = fx->spare;
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

    if (chunk != NULL && chunk->room >= room) {
        fx->spare = chunk->next;
    } else {
        chunk = xmalloc(sizeof(*chunk) + room);
        chunk->room = room;
    }
    chunk->used = 0;
    chunk->next = fx->chunks;
    fx->chunks = chunk;
    return chunk;
}

/* How much of an effect is zeroed: the largest kind is several times the others. */
static const size_t SIZES[] = {
    [EFFECT_OP] = sizeof(struct op),
    [EFFECT_REPLY] = sizeof(struct effect_reply),
    [EFFECT_NOTICE] = sizeof(struct effect_notice),
    [EFFECT_WAITED] = sizeof(struct effect_waited),
    [EFFECT_HELD] = sizeof(struct effect_held),
    [EFFECT_SUBSCRIBE] = sizeof(struct effect_channel),
    [EFFECT_UNSUBSCRIBE] = sizeof(struct effect_channel),
    [EFFECT_WATCH] = sizeof(struct effect_channel),
    [EFFECT_LEADER] = sizeof(struct effect_leader),
    [EFFECT_ANNOUNCE] = sizeof(struct span),
};

struct effect *effects_add(struct effects *fx, enum effect_kind kind)
{
    struct effect *effect;

    if (fx->count == fx->room) {
        fx->room = fx->room == 0 ? 64 : fx->room * 2;
        fx->list = xrealloc(fx->list, fx->room * sizeof(*fx->list));
    }
    effect = effects_alloc(fx, sizeof(*effect));
    memset(&effect->op, 0, SIZES[kind]);
    effect->kind = kind;
    fx->list[fx->count++] = effect;
    return effect;
}

void *effects_alloc(struct effects *fx, size_t size)
{
    struct chunk *chunk = fx->chunks;
    void *ptr;

    size =
        (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (chunk == NULL || chunk->room - chunk->used < size) {
        chunk = new_chunk(fx, size);
    }
    ptr = chunk->data + chunk->used;
    chunk->used += size;
    return ptr;
}

struct span effects_copy(struct effects *fx, struct span s)
{
    char *copy;

    if (s.len == 0) {
        return span_of("", 0);
    }
    copy = effects_alloc(fx, s.len);
    memcpy(copy, s.ptr, s.len);
    return span_of(copy, s.len);
}

void effects_copy_terms(struct effects *fx, struct lock_terms *terms)
{
    char *at = effects_alloc(fx, lock_terms_bytes(terms));

    lock_terms_move(terms, &at);
}
