/* redis_sub_priv: what redis_sub.c (plain channels, the link), redis_sub_shard.c
 * (sharded ones beside them) and redis_sub_daemons.c (what daemons announce) share. For
 * nobody else. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_SUB_PRIV_H
#define LATCHD_BACKEND_REDIS_REDIS_SUB_PRIV_H

#include "backend/redis/channel_name.h"
#include "backend/redis/redis_sub.h"
#include "backend/redis/sub_channel.h"
#include "util/log.h"

struct redis_sub {
    struct redis_conn *conn;
    const struct redis_sub_events *events;
    void *ctx;
    struct sub_channels channels;
    size_t open; /* confirmations, of all channels */
    bool greeted;
    bool closed; /* no event any more */
    /* After a refusal, as an error does not tell its channel: each channel is asked for
     * alone, once the one before is answered. */
    bool one_by_one;
    bool was_refused;          /* on this link */
    struct sub_channel *alone; /* the one that is asked for; NULL: none */
    struct log_recent told;    /* lately */
    bool pattern_open;         /* PSUBSCRIBE was asked, and is not answered yet */
    uint64_t ping_us;          /* when the open PING was sent; 0: none */
    const struct store_listener *listener;
    bool hears_daemons;
    bool daemons_open; /* its SUBSCRIBE was asked behind that, the same */
    char daemons[CHANNEL_DAEMONS_MAX];
    struct channel_member member;

    bool is_clustered;
    bool has_shards; /* so this server said */
    struct list shard_asked;
    struct list shard_refused;
};

/* Subscribes to the daemons' channel. If that is refused, this daemon acts as if it
 * were alone. */
void sub_ask_daemons(struct redis_sub *s);
void sub_on_daemons_refused(struct redis_sub *s, const char *why);
/* Returns true if the push was about that channel. */
bool sub_on_daemons(struct redis_sub *s, const struct span *texts, size_t count);

/* Reports a message of a member's channel to the names that it is of. */
void sub_on_member(struct redis_sub *s, struct span channel);

/* All channels of the name are confirmed. */
void sub_confirmed(struct redis_sub *s, struct sub_channel *ch);

/* While greeting: asks whether there are sharded channels; takes the answer, if it is
 * one. */
void sub_shard_greet(struct redis_sub *s);
bool sub_shard_on_greeting(struct redis_sub *s, const redisReply *reply);

/* Asks for what is wanted of the sharded channel, unless an answer is due that leads
 * back here. */
void sub_shard_step(struct redis_sub *s, struct sub_channel *ch);
/* Returns true if the push, or the error, was about sharded channels. */
bool sub_shard_on_push(struct redis_sub *s, struct span word, struct span channel);
bool sub_shard_on_error(struct redis_sub *s, const char *text);
/* The user may not listen to the sharded channel that was asked for first. False: none
 * was. */
bool sub_shard_on_no_right(struct redis_sub *s);
/* Forgets that the sharded channel was refused. */
void sub_shard_let_go(struct sub_channel *ch);
/* The link was lost. */
void sub_shard_lost(struct sub_channel *ch);

#endif
