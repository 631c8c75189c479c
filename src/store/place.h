/* place: `redis` of the configuration, taken apart: where the truth lives.
 *
 * What is written behind the servers belongs to one topology only, and stands in the
 * struct named like it. */
#ifndef LATCHD_STORE_PLACE_H
#define LATCHD_STORE_PLACE_H

#include "store/scripts.h"
#include "store/store_url.h"
#include "util/buf.h"

#include <stddef.h>

enum store_topology { STORE_SINGLE, STORE_SENTINEL, STORE_CLUSTER, STORE_QUORUM };

enum { STORE_URLS_MAX = 64 };

struct store_place {
    enum store_topology topology;
    /* The servers, or those that know them. With TLS as the first one has it. */
    struct store_url *urls;
    size_t url_count;
    struct {
        char *master;
        struct store_url redis; /* of whatever host: user, password, database, TLS */
    } sentinel;                 /* the urls are Sentinels */
    struct {
        enum publish_way publish;
    } cluster;
};

/* redis://, rediss:// or unix:// (store_url.h): one server. What else there is stands
 * in place_priv.h. False: *reterr is a static text. */
bool store_place_parse(const char *text, struct store_place *ret, const char **reterr);
void store_place_copy(struct store_place *ret, const struct store_place *place);
void store_place_fini(struct store_place *place);

/* `cluster://...`: what belongs together must have one hash tag. */
bool store_place_is_cluster(const char *text);
/* `quorum <url> <url> <url>`: it is not for all kinds of locks. */
bool store_place_is_quorum(const char *text);

/* The text with stars for its passwords. */
void store_place_show(const char *text, struct buf *out);

/* True if it asks for TLS to Redis. */
bool store_place_wants_tls(const struct store_place *place);
/* For connections from now on, where it wants TLS; takes references. */
void store_place_set_tls(struct store_place *place, struct tls *tls);
/* Adds a server, whose strings it takes over. */
void store_place_add(struct store_place *place, struct store_url *url);

#endif
