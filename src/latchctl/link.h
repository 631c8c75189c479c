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

enum { LINK_WORDS_MAX = 48 };

struct link {
    enum link_state state;
    int fd;
    struct buf out;
    struct tls_session *tls; /* NULL: no TLS */
    struct buf wire;         /* with TLS: encrypted output */
    redisReader *reader;
    unsigned greetings; /* unread answers to link_open()'s own commands */
    size_t turn;        /* index of the next address of the target */
    bool refused;       /* latchd refused the login: no use in trying again */
    char error[TARGET_ERROR_MAX];
};

/* Begins to connect to the next of the target's addresses. False: `error` says why. */
bool link_open(struct link *l, const struct target *t);
void link_close(struct link *l);

/* Whether the link is neither closed nor open yet. */
bool link_is_opening(const struct link *l);
short link_events(const struct link *l);
/* Handles events of poll(). False: the link is closed now, and `error` says why. */
bool link_work(struct link *l, short revents);

/* Sends a command: its words, then NULL. */
void link_send(struct link *l, const char *const *words);

/* The next answer, to be freed by freeReplyObject(). NULL: none yet, or a protocol
 * error; then the link is CLOSED. */
redisReply *link_reply(struct link *l);

/* Connects, and waits at most `timeout_ms` for it. */
bool link_connect(struct link *l, struct target *t, uint64_t timeout_ms);
/* Waits for the next answer. NULL: the link is closed, and `error` says why. */
redisReply *link_wait(struct link *l, uint64_t timeout_ms);

/* Whether the reply is an error with this first word. */
bool reply_is_error(const redisReply *reply, const char *word);

#endif
