/* who: a client, as the log names it. */
#ifndef LATCHD_CMD_WHO_H
#define LATCHD_CMD_WHO_H

#include "cmd/client.h"
#include "cmd/shown.h"
#include "util/log.h"

struct call;
struct conn;

struct who {
    struct log_about about; /* points into the rest, and at the client's own texts */
    char address[SHOWN_PEER_ROOM];
    char library[2 * CLIENT_LIB_MAX + 2];
};

void who_is(struct who *ret, const struct client *client, const struct conn *conn);
/* A line about a client and what it did to lock `name`, if that is not empty. */
void who_did(const struct call *call, enum log_level level, struct span name,
             const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Lines about its beginning and its end. */
void who_came(struct client *client, const struct conn *conn);
void who_left(const struct client *client, const struct conn *conn);

#endif
