/* secure: TLS as the configuration has it: the files are read at the start, at every
 * reload, and when CONFIG SET names one of the keys; connections from then on use them.
 */
#ifndef LATCHD_DAEMON_SECURE_H
#define LATCHD_DAEMON_SECURE_H

#include "daemon/config.h"
#include "io/tls.h"

struct server;

/* Whether there is to be TLS at all: a port for it, or a certificate (for a socket that
 * systemd hands over). */
bool secure_is_wanted(const struct config *c);
/* Reads the files. True with *ret NULL: TLS is not wanted. */
bool secure_read(const struct config *c, struct tls **ret, char *reterr, size_t room)
    __attribute__((warn_unused_result));
/* New connections use it from now on; takes the reference. NULL: all stays as it is. */
void secure_use(struct server *s, struct tls *tls);
/* Says, once a day, that the certificate runs out. */
void secure_tick(struct server *s);

#endif
