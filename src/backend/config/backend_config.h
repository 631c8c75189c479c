/* backend_config: `redis` of the configuration, taken apart: where the truth lives.
 *
 * What is written behind the servers belongs to one topology only, and stands in the
 * struct named like it. */
#ifndef LATCHD_BACKEND_CONFIG_BACKEND_CONFIG_H
#define LATCHD_BACKEND_CONFIG_BACKEND_CONFIG_H

#include "backend/config/backend_url.h"
#include "backend/script/scripts.h"
#include "util/buf.h"

#include <stddef.h>

enum backend_topology {
    BACKEND_SINGLE,
    BACKEND_SENTINEL,
    BACKEND_CLUSTER,
    BACKEND_QUORUM
};

enum { BACKEND_URLS_MAX = 64 };

struct backend_config {
    enum backend_topology topology;
    /* The servers, or those that know them. With TLS as the first one has it. */
    struct backend_url *urls;
    size_t url_count;
    struct {
        char *master;
        struct backend_url redis; /* of whatever host: user, password, database, TLS */
    } sentinel;                   /* the urls are Sentinels */
    struct {
        enum publish_way publish;
    } cluster;
};

/* redis://, rediss:// or unix:// (backend_url.h): one server. What else there is stands
 * in backend_config_priv.h. False: *reterr is a static text. */
bool backend_config_parse(const char *text, struct backend_config *ret,
                          const char **reterr);
void backend_config_copy(struct backend_config *ret,
                         const struct backend_config *config);
void backend_config_fini(struct backend_config *config);

/* `cluster://...`: what belongs together must have one hash tag. */
bool backend_config_is_cluster(const char *text);
/* `quorum <url> <url> <url>`: it is not for all kinds of locks. */
bool backend_config_is_quorum(const char *text);

/* The text with stars for its passwords. */
void backend_config_show(const char *text, struct buf *out);

/* True if it asks for TLS to Redis. */
bool backend_config_wants_tls(const struct backend_config *config);
/* For connections from now on, where it wants TLS; takes references. */
void backend_config_set_tls(struct backend_config *config, struct tls *tls);
/* Adds a server, whose strings it takes over. */
void backend_config_add(struct backend_config *config, struct backend_url *url);

#endif
