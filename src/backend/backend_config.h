/* backend_config: the parsed value of `redis` in the configuration: which servers keep
 * the locks.
 *
 * Options behind the servers belong to one topology, and stand in the struct named like
 * it. */
#ifndef LATCHD_BACKEND_BACKEND_CONFIG_H
#define LATCHD_BACKEND_BACKEND_CONFIG_H

#include "backend/script/scripts.h"
#include "io/stream.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>

/* backend_url: the address of one server, as a user writes it.
 *
 *   redis[s]://[user:pass@]host[:port][/db], unix://[user:pass@]/path[?db=n]
 *
 * A user alone gets the password from elsewhere (backend_config_set_password()). User
 * and password are percent-decoded; [::1] is an IPv6 address. The struct owns its
 * strings. */

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

enum backend_topology {
    BACKEND_SINGLE,
    BACKEND_SENTINEL,
    BACKEND_CLUSTER,
    BACKEND_QUORUM
};

enum { BACKEND_URLS_MAX = 64 };

struct backend_config {
    enum backend_topology topology;
    /* The servers, or those that know the others. All use the TLS of the first one. */
    struct backend_url *urls;
    size_t url_count;
    struct {
        char *master;
        struct backend_url redis; /* user, password, database and TLS, for any host */
    } sentinel;                   /* the urls are Sentinels */
    struct {
        enum publish_way publish;
    } cluster;
};

/* Parses redis://, rediss:// or unix:// (backend_url), one server, or one of the
 * forms in backend_config.c. Returns false with *reterr, a static text. */
bool backend_config_parse(const char *text, struct backend_config *ret,
                          const char **reterr);
/* Gives the password to each Redis that the text gave none; NULL: there is none. False:
 * a user has no password. */
bool backend_config_set_password(struct backend_config *config, const char *password,
                                 const char **reterr);
/* Whether both are the same servers, used in the same way, but for users and passwords.
 */
bool backend_config_same_places(const struct backend_config *a,
                                const struct backend_config *b);
/* Takes users and passwords from another one of the same places. */
void backend_config_set_login(struct backend_config *config,
                              const struct backend_config *from);
void backend_config_copy(struct backend_config *ret,
                         const struct backend_config *config);
void backend_config_fini(struct backend_config *config);

/* Whether it is `cluster://...`, where names that belong together need one hash tag. */
bool backend_config_is_cluster(const char *text);
/* Whether it is `quorum <url> <url> <url>`, which does not serve all kinds of locks. */
bool backend_config_is_quorum(const char *text);

/* The number of the database that the locks are in; 0 if the text is none of these. */
unsigned backend_config_database(const char *text);

/* Writes the text with stars in place of its passwords. */
void backend_config_show(const char *text, struct buf *out);

/* Whether it asks for TLS to Redis. */
bool backend_config_wants_tls(const struct backend_config *config);
/* Sets the TLS of later connections, where they want TLS; takes references. */
void backend_config_set_tls(struct backend_config *config, struct tls *tls);
/* Adds a server, whose strings it takes over. */
void backend_config_add(struct backend_config *config, struct backend_url *url);

#endif
