/* link: one connection to a latchd, that never blocks unless it is told to.
 *
 *   CLOSED --link_open()--> CONNECTING --> OPEN --broken--> CLOSED
 *                               |           ^
 *                               v           |
 *                             SHAKING_HANDS-+   with TLS
 *
 * The caller polls link_fd() for link_events() and calls link_work(), then takes
 * replies with link_reply(). What is sent while it connects leaves once it is open.
 * AUTH and the connection's name go first, and their answers are not seen by the
 * caller. A zeroed struct is closed. */
#ifndef LATCHD_LATCHCTL_LINK_H
#define LATCHD_LATCHCTL_LINK_H

#include "io/tls_session.h"
#include "latchctl/target.h"
#include "util/buf.h"

#include <hiredis/hiredis.h>

enum link_state { LINK_CLOSED, LINK_CONNECTING, LINK_SHAKING_HANDS, LINK_OPEN };

enum { LINK_WORDS_MAX = 24 };

struct link {
    enum link_state state;
    int fd;
    struct buf out;
    struct tls_session *tls; /* NULL: without */
    struct buf wire;         /* with TLS: of `out`, what is encrypted */
    redisReader *reader;
    unsigned greetings; /* answers to what link_open() sent itself */
    size_t turn;        /* which of the target's addresses is next */
    bool refused;       /* latchd does not want us: trying again is of no use */
    char error[TARGET_ERROR_MAX];
};

/* Begins to connect, to the target's addresses in turn. False: `error` says why. */
bool link_open(struct link *l, const struct target *t);
void link_close(struct link *l);

/* Neither closed nor open yet. */
bool link_is_opening(const struct link *l);
short link_events(const struct link *l);
/* False: it is closed now, `error` says why. */
bool link_work(struct link *l, short revents);

/* The words of a command; the last one is followed by NULL. */
void link_send(struct link *l, const char *const *words);

/* The next answer, to be freed with freeReplyObject(); NULL: none yet, or (the link is
 * CLOSED then) what came was no answer. */
redisReply *link_reply(struct link *l);

/* Connects within `timeout_ms`. */
bool link_connect(struct link *l, struct target *t, uint64_t timeout_ms);
/* Waits for the next answer. NULL: the link is closed, `error` says why. */
redisReply *link_wait(struct link *l, uint64_t timeout_ms);

/* The first word of an error. */
bool reply_is_error(const redisReply *reply, const char *word);

#endif
