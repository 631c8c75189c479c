/* tls_certs: TLS as the configuration has it, for clients and to Redis: the files are
 * read at the start, at every reload, and when CONFIG SET names one of the keys;
 * connections from then on use them. */
#ifndef LATCHD_DAEMON_TLS_CERTS_H
#define LATCHD_DAEMON_TLS_CERTS_H

#include "daemon/config/config.h"
#include "io/tls.h"

struct server;

/* NULL: not wanted. */
struct tls_certs {
    struct tls *clients; /* there is a port for it, or a certificate */
    struct tls *redis;   /* `redis` is rediss:// */
};

bool tls_certs_read(const struct config *c, struct tls_certs *ret, char *reterr,
                    size_t room) __attribute__((warn_unused_result));
void tls_certs_fini(struct tls_certs *sec);
/* New connections use it from now on; what it does not have stays as it is. Takes what
 * is in it. */
void tls_certs_use(struct server *s, struct tls_certs *sec);
/* Says, once a day, that the certificate runs out. */
void tls_certs_tick(struct server *s);

#endif
