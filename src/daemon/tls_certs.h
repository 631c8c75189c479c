/* tls_certs: the configured TLS files, for clients and for Redis. They are read at the
 * start, at every reload, and when CONFIG SET changes one of the keys; new connections
 * use them from then on. */
#ifndef LATCHD_DAEMON_TLS_CERTS_H
#define LATCHD_DAEMON_TLS_CERTS_H

#include "daemon/config.h"
#include "io/tls.h"

struct server;

/* NULL: not wanted. */
struct tls_certs {
    struct tls *clients; /* for clients: if there is a TLS port or a certificate */
    struct tls *redis;   /* for Redis: if `redis` is rediss:// */
};

bool tls_certs_read(const struct config *c, struct tls_certs *ret, char *reterr,
                    size_t room) __attribute__((warn_unused_result));
void tls_certs_fini(struct tls_certs *sec);
/* Makes new connections use *sec, and takes its content. Members that are NULL change
 * nothing. */
void tls_certs_use(struct server *s, struct tls_certs *sec);
/* Warns once a day when the certificate expires soon. */
void tls_certs_tick(struct server *s);

#endif
