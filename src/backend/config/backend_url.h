/* backend_url: the address of one server, as a user writes it.
 *
 *   redis[s]://[user:pass@]host[:port][/db], unix://[user:pass@]/path[?db=n]
 *
 * A user alone gets the password from elsewhere (backend_config_set_password()). User
 * and password are percent-decoded; [::1] is an IPv6 address. The struct owns its
 * strings. */
#ifndef LATCHD_BACKEND_CONFIG_BACKEND_URL_H
#define LATCHD_BACKEND_CONFIG_BACKEND_URL_H

#include "io/stream.h"
#include "util/span.h"

#include <stdbool.h>

struct backend_url {
    char *unix_path; /* unix:///path; NULL: TCP */
    char *host;
    char *port;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    unsigned db;
    bool wants_tls;  /* rediss:// */
    struct tls *tls; /* client TLS, for later connections. NULL: plain */
};

/* Returns false with *reterr, a static text, if it is not valid. */
bool backend_url_parse(const char *text, struct backend_url *ret, const char **reterr);
/* A deep copy; takes a reference to its TLS. */
void backend_url_copy(struct backend_url *ret, const struct backend_url *url);
/* Sets the TLS of a URL that wants TLS; takes a reference. */
void backend_url_set_tls(struct backend_url *url, struct tls *tls);
/* Sets host and port, and keeps the rest. */
void backend_url_set_server(struct backend_url *url, struct span host,
                            struct span port);
/* Takes user and password from the other one. False: they are the same already. */
bool backend_url_set_login(struct backend_url *url, const struct backend_url *from);
void backend_url_fini(struct backend_url *url);

#endif
