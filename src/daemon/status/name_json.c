/* The JSON for the status page's view of a name, and for its search. */
#include "daemon/server_state.h"
#include "daemon/status/json_rows.h"
#include "daemon/status/web_priv.h"

#include <inttypes.h>
#include <string.h>

enum {
    NAME_ROWS = 100,       /* holders of the name, and waiters */
    SEARCH_STEP = 2048,    /* names that one answer goes through, about */
    SEARCH_FOUND_MAX = 50, /* after so many an answer ends; a few more may be in it */
    CURSOR_ROOM = 24,
};

/* --- a search --------------------------------------------------------- */

struct search {
    struct row_writer *w;
    struct span find;
    size_t found, seen;
};

static bool name_contains(struct span name, struct span text)
{
    return text.len == 0 || memmem(name.ptr, name.len, text.ptr, text.len) != NULL;
}

static void search_name(void *ctx, const struct name_view *v)
{
    struct search *search = ctx;

    search->seen++;
    if (name_contains(v->name, search->find)) {
        search->found++;
        write_name_row(search->w, v);
    }
}

void web_names(void *ctx, struct span find, uint64_t cursor, struct buf *out)
{
    struct server *s = ctx;
    struct json j = { .out = out };
    struct row_writer w = { s, &j };
    struct search search = { .w = &w, .find = find };
    char next[CURSOR_ROOM];

    json_open(&j, NULL, '{');
    json_bytes(&j, "find", find);
    json_open(&j, "names", '[');
    do {
        cursor = survey_names(s->engine, cursor, 1, search_name, &search);
        search.seen++; /* an empty place in the table costs, too */
    } while (cursor != 0 && search.found < SEARCH_FOUND_MAX &&
             search.seen < SEARCH_STEP);
    json_close(&j, ']');
    /* As text, since a browser's numbers are exact only up to 2^53. */
    (void)snprintf(next, sizeof(next), "%" PRIu64, cursor);
    json_text(&j, "cursor", next);
    json_close(&j, '}');
    buf_add_str(out, "\n");
}

/* --- one name --------------------------------------------------------- */

static void write_losses_of(struct row_writer *w, const char *key,
                            const struct losses *l, struct span name)
{
    json_open(w->j, key, '[');
    for (size_t i = 0; i < losses_known(l); i++) {
        const struct loss *loss = losses_at(l, i);

        if (span_eq(loss_name(loss), name)) {
            write_loss_row(w, loss);
        }
    }
    json_close(w->j, ']');
}

void web_name(void *ctx, struct span name, struct buf *out)
{
    struct server *s = ctx;
    struct json j = { .out = out };
    struct row_writer w = { s, &j };
    struct name_view view = { 0 };

    (void)survey_name(s->engine, name, &view);
    json_open(&j, NULL, '{');
    json_bytes(&j, "name", name);
    json_uint(&j, "holds", view.holds);
    json_uint(&j, "waiting", view.waiting);
    json_bool(&j, "lent", view.lent);
    json_bool(&j, "latch", view.is_latch);
    json_open(&j, "holders", '[');
    survey_holds_of(s->engine, name, NAME_ROWS, write_hold_row, &w);
    json_close(&j, ']');
    json_open(&j, "waits", '[');
    survey_waits_of(s->engine, name, NAME_ROWS, write_wait_row, &w);
    json_close(&j, ']');
    write_losses_of(&w, "losses", cmd_losses(s->cmd), name);
    write_losses_of(&w, "expired", cmd_expired(s->cmd), name);
    json_close(&j, '}');
    buf_add_str(out, "\n");
}
