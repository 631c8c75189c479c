#include "cmd/client.h"

#include "cmd/deferred_command.h"
#include "cmd/pipeline.h"
#include "util/alloc.h"

#include <stdlib.h>

enum { GRANTS_KEEP = 64 };

/* Grants whose replies were written since the last input. */
struct grants {
    uint64_t input; /* the number of reads then */
    size_t count;
    size_t room;
    uint64_t ids[];
};

struct client *client_new(uint64_t id)
{
    struct client *cl = xcalloc(1, sizeof(*cl));

    cl->id = id;
    cl->proto = 2;
    subscriber_init(&cl->sub);
    list_init(&cl->monitors);
    return cl;
}

void client_free(struct client *cl)
{
    if (cl == NULL) {
        return;
    }
    list_del(&cl->monitors);
    for (int i = 0; cl->texts != NULL && i < CLIENT_TEXTS; i++) {
        free(cl->texts[i]);
    }
    free(cl->texts);
    free(cl->grants);
    multi_free(cl->multi);
    deferred_command_free(cl->deferred);
    free(cl);
}

void client_reset(struct client *cl)
{
    cl->proto = 2;
    cl->reply_off = cl->skip = cl->skip_next = cl->exempt = false;
    list_del(&cl->monitors);
    client_set_text(cl, CLIENT_NAME, SPAN_NONE);
    multi_free(cl->multi);
    cl->multi = NULL;
}

static size_t pipeline_bytes(const struct pipeline *p)
{
    size_t bytes = 0;

    if (p == NULL) {
        return 0;
    }
    for (size_t i = p->first; i < p->count; i++) {
        bytes += p->steps[i].reply.room;
    }
    return bytes + sizeof(*p) + p->room * sizeof(p->steps[0]) + p->deferred_bytes;
}

size_t client_bytes(const struct client *cl)
{
    return multi_bytes(cl->multi) + pipeline_bytes(cl->pipeline) +
           (cl->deferred == NULL ? 0 : cl->deferred->bytes) +
           ((size_t)cl->sub.channels + cl->sub.patterns) * SUBSCRIPTION_BYTES;
}

const struct command *client_waiting(const struct client *cl, uint64_t number)
{
    const struct pipeline *p = cl->pipeline;

    if (p == NULL) {
        return cl->call == number ? client_last(cl) : NULL;
    }
    for (size_t i = p->first; i < p->count; i++) {
        if (p->steps[i].state == STEP_ASKED && p->steps[i].number == number) {
            return p->steps[i].command;
        }
    }
    return NULL;
}

bool client_text_ok(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '!' || text.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

const char *client_text(const struct client *cl, enum client_text which)
{
    return cl->texts == NULL ? NULL : cl->texts[which];
}

void client_set_text(struct client *cl, enum client_text which, struct span text)
{
    if (cl->texts == NULL && text.len == 0) {
        return;
    }
    if (cl->texts == NULL) {
        cl->texts = xcalloc(CLIENT_TEXTS, sizeof(*cl->texts));
    }
    free(cl->texts[which]);
    cl->texts[which] = text.len == 0 ? NULL : xmemdup0(text.ptr, text.len);
}

static struct grants *grants_resize(struct grants *g, size_t room)
{
    g = xrealloc(g, sizeof(*g) + room * sizeof(g->ids[0]));
    g->room = room;
    return g;
}

void client_granted(struct client *cl, uint64_t grant, uint64_t input)
{
    struct grants *g = cl->grants;

    if (g == NULL || (g->input != input && g->room > GRANTS_KEEP)) {
        free(g); /* the list of a long pipeline is not kept */
        g = grants_resize(NULL, 1);
        g->input = ~input;
    }
    if (g->input != input) {
        g->count = 0;
        g->input = input;
    }
    if (g->count == g->room) {
        g = grants_resize(g, g->room * 2);
    }
    g->ids[g->count++] = grant;
    cl->grants = g;
}

size_t client_doubtful(const struct client *cl, uint64_t input, const uint64_t **ret)
{
    const struct grants *g = cl->grants;

    *ret = g == NULL ? NULL : g->ids;
    return g != NULL && g->input == input ? g->count : 0;
}
