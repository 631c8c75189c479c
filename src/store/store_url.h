/* store_url: how one server is reached, as a user writes it.
 *
 *   redis[s]://[user:pass@]host[:port][/db], unix:///path[?db=n]
 *
 * Percent-decoding in user and password; [::1] for IPv6. Its strings are its own. */
#ifndef LATCHD_STORE_STORE_URL_H
#define LATCHD_STORE_STORE_URL_H

#include "io/stream.h"
#include "util/span.h"

#include <stdbool.h>

struct store_url {
    char *unix_path; /* unix:///path; NULL: TCP */
    char *host;
    char *port;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    unsigned db;
    bool wants_tls;  /* rediss:// */
    struct tls *tls; /* a client's; for connections from now on. NULL: plain */
};

/* False: *reterr is a static text. */
bool store_url_parse(const char *text, struct store_url *ret, const char **reterr);
/* A deep copy; takes a reference to its TLS. */
void store_url_copy(struct store_url *ret, const struct store_url *url);
/* From now on, for a URL that wants TLS; takes a reference. */
void store_url_set_tls(struct store_url *url, struct tls *tls);
/* The same, of another server. */
void store_url_set_server(struct store_url *url, struct span host, struct span port);
void store_url_fini(struct store_url *url);

#endif
