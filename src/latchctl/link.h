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

#include "io/tls.h"
#include "latchctl/options.h"
#include "latchctl/target.h"
#include "util/buf.h"
#include "util/span.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

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

/* Ask: one command, one answer, for subcommands that change nothing. */

/* Connects. False: an error was printed. */
bool ask_open(struct link *l, struct options *o);

/* Sends a command, and returns the answer, to be freed by freeReplyObject(). NULL:
 * latchd refused or is gone, and an error was printed. */
redisReply *ask_daemon(struct link *l, const char *const *words);
/* The same, without printing an error of latchd. */
redisReply *ask_quietly(struct link *l, const char *const *words);

/* --- reading answers: what is missing is empty, 0 or NULL ---------------- */

/* The value of `key` in a map, which RESP2 writes as a flat array. */
const redisReply *reply_get(const redisReply *map, const char *key);
struct span reply_text(const redisReply *reply);
bool reply_has_number(const redisReply *reply);
/* A number; negative ones are 0. */
uint64_t reply_number(const redisReply *reply);
size_t reply_count(const redisReply *reply);
const redisReply *reply_at(const redisReply *reply, size_t index);

/* The value of `key=` in a line of CLIENT LIST, up to the next space. */
struct span line_get(struct span line, const char *key);
/* The value of `key:` in INFO, up to the end of its line. */
struct span info_get(struct span info, const char *key);
uint64_t info_number(struct span info, const char *key);

#endif
