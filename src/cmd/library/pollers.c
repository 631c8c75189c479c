#include "cmd/library/pollers.h"

#include "util/alloc.h"
#include "util/list.h"
#include "util/table.h"

#include <stdlib.h>

struct poller {
    struct table_node node;
    struct list in_order;
    uint64_t since_ms;
    uint64_t answered_ms;
};

struct pollers {
    struct table table;
    struct list order; /* the one that was answered longest ago is first */
};

static struct poller *find_poller(const struct pollers *p, uint64_t poller)
{
    struct table_node *node = table_find(&p->table, poller);

    return node == NULL ? NULL : container_of(node, struct poller, node);
}

static void drop_poller(struct pollers *p, struct poller *poller)
{
    table_remove(&p->table, &poller->node);
    list_del(&poller->in_order);
    free(poller);
}

static struct poller *first_poller(const struct pollers *p)
{
    struct list *first = list_first(&p->order);

    return first == NULL ? NULL : container_of(first, struct poller, in_order);
}

struct pollers *pollers_new(void)
{
    struct pollers *p = xcalloc(1, sizeof(*p));

    list_init(&p->order);
    return p;
}

void pollers_free(struct pollers *p)
{
    if (p == NULL) {
        return;
    }
    while (first_poller(p) != NULL) {
        drop_poller(p, first_poller(p));
    }
    table_fini(&p->table);
    free(p);
}

uint64_t pollers_since(const struct pollers *p, uint64_t poller, uint64_t now_ms)
{
    const struct poller *found = find_poller(p, poller);

    return found == NULL || now_ms - found->answered_ms > POLLER_KNOWN_MS
               ? 0
               : found->since_ms;
}

void pollers_remember(struct pollers *p, uint64_t poller, uint64_t since_ms,
                      uint64_t now_ms)
{
    struct poller *found = find_poller(p, poller), *first;

    if (found == NULL) {
        first = p->table.count >= POLLERS_MAX ? first_poller(p) : NULL;
        if (first != NULL) {
            drop_poller(p, first);
        }
        found = xcalloc(1, sizeof(*found));
        found->node.key = poller;
        list_init(&found->in_order);
        table_add(&p->table, &found->node);
    }
    found->since_ms = since_ms;
    found->answered_ms = now_ms;
    list_del(&found->in_order);
    list_append(&p->order, &found->in_order);
}

void pollers_forget(struct pollers *p, uint64_t poller)
{
    struct poller *found = find_poller(p, poller);

    if (found != NULL) {
        drop_poller(p, found);
    }
}

void pollers_expire(struct pollers *p, uint64_t now_ms)
{
    struct poller *first;

    while ((first = first_poller(p)) != NULL &&
           now_ms - first->answered_ms > POLLER_KNOWN_MS) {
        drop_poller(p, first);
    }
}

size_t pollers_count(const struct pollers *p)
{
    return p->table.count;
}
