#include "cmd/deferred_command.h"

#include "cmd/cmd_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

struct deferred_command *deferred_command_new(const struct command_ctx *ctx)
{
    size_t bytes = sizeof(struct deferred_command) + ctx->argc * sizeof(struct span);
    struct deferred_command *k;
    char *at;

    for (size_t i = 0; i < ctx->argc; i++) {
        bytes += ctx->argv[i].len;
    }
    k = xmalloc(bytes);
    *k = (struct deferred_command){
        .conn = ctx->client->id,
        .command = ctx->command,
        .bytes = bytes,
        .argc = ctx->argc,
    };
    list_init(&k->in_pause);
    at = (char *)(k->argv + k->argc);
    for (size_t i = 0; i < ctx->argc; i++) {
        size_t len = ctx->argv[i].len;

        if (len > 0) {
            memcpy(at, ctx->argv[i].ptr, len);
        }
        k->argv[i] = span_of(at, len);
        at += len;
    }
    return k;
}

void deferred_command_free(struct deferred_command *k)
{
    if (k != NULL) {
        list_del(&k->in_pause);
        free(k);
    }
}
