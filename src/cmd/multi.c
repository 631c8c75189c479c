#include "cmd/multi.h"

#include "cmd/client.h"
#include "cmd/deferred_command.h"
#include "cmd/library/watch.h"
#include "util/alloc.h"

#include <stdlib.h>

void multi_free(struct multi *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->count; i++) {
        deferred_command_free(m->queue[i]);
    }
    free(m->queue);
    free(m->grants);
    buf_reset(&m->out);
    watch_free(m->watch);
    free(m);
}

void multi_drop(struct client *client)
{
    multi_free(client->multi);
    client->multi = NULL;
}

int64_t multi_count(const struct multi *m)
{
    return multi_is_open(m) ? (int64_t)m->count : -1;
}

size_t multi_bytes(const struct multi *m)
{
    return m == NULL ? 0
                     : sizeof(*m) + watch_bytes(m->watch) + m->bytes +
                           m->room * sizeof(*m->queue) + m->out.room;
}

bool multi_writes(const struct multi *m)
{
    return m != NULL && m->writes;
}

bool multi_is_running(const struct multi *m)
{
    return m != NULL && m->state == MULTI_RUNNING;
}

bool multi_is_open(const struct multi *m)
{
    return m != NULL && m->state != MULTI_WATCHING;
}

/* --- watching --------------------------------------------------------- */

struct multi *multi_make(struct client *client)
{
    if (client->multi == NULL) {
        client->multi = xcalloc(1, sizeof(struct multi));
    }
    return client->multi;
}

struct watch *multi_watch(const struct multi *m)
{
    return m == NULL ? NULL : m->watch;
}

bool multi_watch_keys(struct client *client, const struct span *keys, size_t count)
{
    return watch_add(&multi_make(client)->watch, keys, count);
}

void multi_unwatch(struct client *client)
{
    struct multi *m = client->multi;

    if (m != NULL && m->state == MULTI_WATCHING) {
        multi_drop(client);
    } else if (m != NULL) {
        watch_free(m->watch);
        m->watch = NULL;
    }
}

bool multi_add(struct multi *m, struct deferred_command *k)
{
    if (m->count == MULTI_COMMANDS_MAX || m->bytes + k->bytes > MULTI_BYTES_MAX) {
        return false;
    }
    if (m->count == m->room) {
        m->room = m->room == 0 ? 8 : m->room * 2;
        m->queue = xrealloc(m->queue, m->room * sizeof(struct deferred_command *));
    }
    m->queue[m->count++] = k;
    m->bytes += k->bytes;
    m->writes |= (k->command->flags & CMD_WRITE) != 0;
    return true;
}

void multi_granted(struct multi *m, uint64_t grant)
{
    if (m->grant_count == m->grant_room) {
        m->grant_room = m->grant_room == 0 ? 4 : m->grant_room * 2;
        m->grants = xrealloc(m->grants, m->grant_room * sizeof(*m->grants));
    }
    m->grants[m->grant_count++] = (struct multi_grant){
        .grant = grant,
        .from = m->answered,
        .len = buf_len(&m->out) - m->answered,
        .at = m->next - 1,
    };
}
