/* json_rows: one hold, one waiter, one name or one loss, as JSON. */
#ifndef LATCHD_DAEMON_STATUS_JSON_ROWS_H
#define LATCHD_DAEMON_STATUS_JSON_ROWS_H

#include "cmd/observe/losses.h"
#include "engine/survey.h"
#include "util/json.h"

struct server;

struct row_writer {
    struct server *s;
    struct json *j;
};

/* Each is an object; `ctx` is a struct row_writer. */
void write_hold_row(void *ctx, const struct hold_view *v);
void write_wait_row(void *ctx, const struct wait_view *v);
void write_name_row(void *ctx, const struct name_view *v);
void write_loss_row(struct row_writer *w, const struct loss *loss);

/* What is known of a name, in an object that is open. */
void write_name_fields(struct row_writer *w, const struct name_view *v);

#endif
