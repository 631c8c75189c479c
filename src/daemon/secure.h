/* secure: TLS as the configuration has it, for clients and to Redis: the files are read
 * at the start, at every reload, and when CONFIG SET names one of the keys; connections
 * from then on use them. */
#ifndef LATCHD_DAEMON_SECURE_H
#define LATCHD_DAEMON_SECURE_H

#include "daemon/config.h"
#include "io/tls.h"

struct server;

/* NULL: not wanted. */
struct secure {
    struct tls *clients; /* there is a port for it, or a certificate */
    struct tls *redis;   /* `redis` is rediss:// */
};

bool secure_read(const struct config *c, struct secure *ret, char *reterr, size_t room)
    __attribute__((warn_unused_result));
void secure_fini(struct secure *sec);
/* New connections use it from now on; what it does not have stays as it is. Takes what
 * is in it. */
void secure_use(struct server *s, struct secure *sec);
/* Says, once a day, that the certificate runs out. */
void secure_tick(struct server *s);

#endif
