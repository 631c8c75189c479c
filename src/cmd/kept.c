#include "cmd/kept.h"

#include "cmd/internal.h"
#include "util/alloc.h"

#include <stdlib.h>

struct kept *kept_new(const struct call *call)
{
    size_t bytes = sizeof(struct kept) + call->argc * sizeof(struct span);
    struct kept *k;
    char *at;

    for (size_t i = 0; i < call->argc; i++) {
        bytes += call->argv[i].len;
    }
    k = xmalloc(bytes);
    *k = (struct kept){
        .conn = call->client->id,
        .command = call->command,
        .bytes = bytes,
        .argc = call->argc,
    };
    list_init(&k->in_pause);
    at = (char *)(k->argv + k->argc);
    for (size_t i = 0; i < call->argc; i++) {
        size_t len = call->argv[i].len;

        if (len > 0) {
            memcpy(at, call->argv[i].ptr, len);
        }
        k->argv[i] = span_of(at, len);
        at += len;
    }
    return k;
}

void kept_free(struct kept *k)
{
    if (k != NULL) {
        list_del(&k->in_pause);
        free(k);
    }
}
