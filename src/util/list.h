/* list: an intrusive, circular, doubly linked list. The list owns nothing. A node that
 * is on no list points to itself, so it can be removed twice, and be asked whether it
 * is on a list. */
#ifndef LATCHD_UTIL_LIST_H
#define LATCHD_UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev;
    struct list *next;
};

#define container_of(ptr, type, member)                                                \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A loop over the items of a list: LIST_EACH(w, &lock->queue, in_queue) { ... }; `item`
 * is a pointer to what has the node `member`. With _SAFE the item may be removed. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define LIST_EACH(item, head, member)                                                  \
    LIST_EACH_(item, head, member, LIST_NODE(__LINE__))
#define LIST_EACH_SAFE(item, head, member)                                             \
    LIST_EACH_SAFE_(item, head, member, LIST_NODE(__LINE__), LIST_NEXT(__LINE__))
#define LIST_EACH_(item, head, member, node)                                           \
    for (struct list *node = (head)->next;                                             \
         node != (head) &&                                                             \
         ((item) = container_of(node, __typeof__(*(item)), member), true);             \
         node = node->next)
#define LIST_EACH_SAFE_(item, head, member, node, after)                               \
    for (struct list *node = (head)->next, *after = node->next;                        \
         node != (head) &&                                                             \
         ((item) = container_of(node, __typeof__(*(item)), member), true);             \
         node = after, after = node->next)
#define LIST_NODE(line) LIST_NODE_(line)
#define LIST_NODE_(line) list_node_##line
#define LIST_NEXT(line) LIST_NEXT_(line)
#define LIST_NEXT_(line) list_next_##line
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert_before(struct list *pos, struct list *node)
{
    node->prev = pos->prev;
    node->next = pos;
    pos->prev->next = node;
    pos->prev = node;
}

static inline void list_append(struct list *head, struct list *node)
{
    list_insert_before(head, node);
}

static inline void list_prepend(struct list *head, struct list *node)
{
    list_insert_before(head->next, node);
}

static inline void list_del(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* The first node, or NULL. */
static inline struct list *list_first(const struct list *head)
{
    return list_empty(head) ? NULL : head->next;
}

static inline void *list_first_item(const struct list *head, size_t offset)
{
    return list_empty(head) ? NULL : (char *)head->next - offset;
}

/* Whether the list has a first item, which is `item` then; LIST_POP takes it off. */
#define LIST_FIRST(item, head, member)                                                 \
    (((item) = list_first_item(head, offsetof(__typeof__(*(item)), member))) != NULL)
#define LIST_POP(item, head, member)                                                   \
    (LIST_FIRST(item, head, member) && (list_del(&(item)->member), true))

/* Moves all nodes of `from` to the end of `to`; `from` is empty afterwards. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#endif
