/* target: which latchd is meant, and who asks it.
 *
 * From LATCHD_URL, -u, -h, -p, -s, --user and the password's variables, as redis-cli
 * has them. The strings are the target's own. */
#ifndef LATCHD_CTL_TARGET_H
#define LATCHD_CTL_TARGET_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { TARGET_ADDRESSES_MAX = 8, TARGET_ERROR_MAX = 256 };

struct target_address {
    struct sockaddr_storage addr;
    socklen_t len;
};

struct target {
    char *host;
    char *port;
    char *path; /* of a unix socket; NULL: TCP */
    char *user;
    char *password;
    char *about; /* for messages; target_resolve() makes it */
    struct target_address addresses[TARGET_ADDRESSES_MAX];
    size_t address_count;
};

/* 127.0.0.1 and latchd's port. */
void target_init(struct target *t);
void target_fini(struct target *t);

void target_set(char **field, const char *value);

/* `redis://[[user]:password@]host[:port][/0]` or `unix:///path`. */
bool target_set_url(struct target *t, const char *url, char *reterr, size_t room);

/* Looks the host up, which may take its time. False: *reterr says why. */
bool target_resolve(struct target *t, char *reterr, size_t room);

#endif
