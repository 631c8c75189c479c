#include "cmd/client.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { GRANTS_KEEP = 64 };

struct client *client_new(uint64_t id)
{
    struct client *cl = xcalloc(1, sizeof(*cl));

    cl->id = id;
    cl->proto = 2;
    subscriber_init(&cl->sub);
    list_init(&cl->in_pause);
    list_init(&cl->monitors);
    return cl;
}

void client_free(struct client *cl)
{
    if (cl == NULL) {
        return;
    }
    list_del(&cl->monitors);
    free(cl->address);
    free(cl->name);
    free(cl->lib_name);
    free(cl->lib_ver);
    free(cl->grants);
    multi_free(cl->multi);
    list_del(&cl->in_pause);
    free(cl->kept);
    free(cl);
}

void client_reset(struct client *cl)
{
    cl->proto = 2;
    cl->reply_off = cl->skip = cl->skip_next = false;
    list_del(&cl->monitors);
    client_set_text(&cl->name, SPAN_NONE);
    multi_free(cl->multi);
    cl->multi = NULL;
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

void client_set_text(char **field, struct span text)
{
    free(*field);
    *field = text.len == 0 ? NULL : xmemdup0(text.ptr, text.len);
}

void client_granted(struct client *cl, uint64_t grant, uint64_t input)
{
    if (cl->grant_input != input) {
        if (cl->grant_room > GRANTS_KEEP) { /* that was a long pipeline */
            free(cl->grants);
            cl->grants = NULL;
            cl->grant_room = 0;
        }
        cl->grant_count = 0;
        cl->grant_input = input;
    }
    if (cl->grant_count == cl->grant_room) {
        cl->grant_room = cl->grant_room == 0 ? 1 : cl->grant_room * 2;
        cl->grants = xrealloc(cl->grants, cl->grant_room * sizeof(*cl->grants));
    }
    cl->grants[cl->grant_count++] = grant;
}

size_t client_doubtful(const struct client *cl, uint64_t input, const uint64_t **ret)
{
    *ret = cl->grants;
    return cl->grant_input == input ? cl->grant_count : 0;
}
