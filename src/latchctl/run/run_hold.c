/* Keeping the lock: renewed every third of its lease, over a new connection whenever
 * the old one is gone, until latchd says that it is lost, or its owner (run_keeper.c)
 * finds that its time is over.
 *
 * The lease is of the kind that latchd does not renew by itself: whether it is still
 * ours depends on what we hear ourselves, not on what connection latchd sees. */
#include "latchctl/run/run.h"
#include "latchctl/show.h"
#include "util/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 500,
    ANSWER_MIN_MS = 500,
    ANSWER_MAX_MS = 5000,
    AGAIN_MS = 200, /* delay after a temporary error */
    RELEASE_MS = 3000,
    MARGIN_MS = 50,
    NUMBER_MAX = 24,
    CHANNEL_MAX = 600,
};

/* Like latchd itself, allows 1 % and 50 ms for clocks that differ. */
uint64_t hold_valid(uint64_t sent, uint64_t left_ms)
{
    uint64_t margin = left_ms / 100 + MARGIN_MS;

    return sent + (left_ms > margin ? left_ms - margin : 0);
}

void hold_words_add(const char **words, const char *name, const char *value)
{
    while (*words != NULL) {
        words++;
    }
    words[0] = name;
    words[1] = value;
    words[2] = NULL;
}

size_t run_name_count(const struct run *r)
{
    return 1 + r->options->more_count;
}

const char *run_name(const struct run *r, size_t index)
{
    return index == 0 ? r->options->name : r->options->more[index - 1];
}

static size_t add_many(const struct run *r, const char **words)
{
    static const char *const COUNTS[] = { "2",  "3",  "4",  "5",  "6",  "7",  "8", "9",
                                          "10", "11", "12", "13", "14", "15", "16" };
    size_t count = 0;

    words[count++] = "MLOCK";
    words[count++] = COUNTS[r->options->more_count - 1];
    for (size_t i = 0; i < run_name_count(r); i++) {
        words[count++] = run_name(r, i);
    }
    return count;
}

void hold_words(const struct run *r, const char *verb, size_t index, const char **words)
{
    const struct options *o = r->options;
    bool takes = strcmp(verb, "LOCK") == 0;
    unsigned taker = !takes ? FOR_UNLOCK : o->more_count != 0 ? FOR_MLOCK : FOR_LOCK;
    size_t count = 0;

    if (taker == FOR_MLOCK) {
        count = add_many(r, words);
    } else {
        words[count++] = verb;
        words[count++] = run_name(r, index);
    }
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (o->terms[i] != NULL && (TERMS[i].takers & taker) != 0) {
            words[count++] = TERMS[i].word;
            if (TERMS[i].type != TERM_FLAG) {
                words[count++] = o->terms[i];
            }
        }
    }
    words[count] = NULL;
    hold_words_add(words, "ID", r->id);
}

void hold_init(struct hold *h, struct run *run)
{
    uint64_t now = clock_boot_ms();

    *h = (struct hold){
        .run = run,
        .link = run->link,
        .valid_until = run->valid_until,
        .renew_at = now + run->options->lease_ms / 3,
    };
    run->link = (struct link){ 0 };
}

void hold_fini(struct hold *h)
{
    link_close(&h->link);
    link_close(&h->ear);
}

static uint64_t answer_ms(const struct hold *h)
{
    uint64_t ms = h->run->options->lease_ms / 6;

    return ms < ANSWER_MIN_MS ? ANSWER_MIN_MS : ms > ANSWER_MAX_MS ? ANSWER_MAX_MS : ms;
}

static void on_broken(struct hold *h, uint64_t now)
{
    if (!h->complained) {
        say_verbose("the connection to latchd at %s is gone: %s",
                    h->run->options->target.about, h->link.error);
        h->complained = true;
    }
    h->asked = 0;
    h->renew_at = now;
    h->open_at = now + h->pause;
    h->pause = h->pause == 0             ? PAUSE_MIN_MS
               : h->pause < PAUSE_MAX_MS ? h->pause * 2
                                         : h->pause;
}

static void on_answer(struct hold *h, const redisReply *reply, uint64_t now)
{
    h->asked--;
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0) {
        uint64_t left_ms = (uint64_t)reply->integer;

        h->renewed_ms = left_ms < h->renewed_ms ? left_ms : h->renewed_ms;
        if (h->renewed_ms == 0) {
            h->renew_at = now + AGAIN_MS; /* not all of them are confirmed */
        }
        if (h->asked != 0 || h->renewed_ms == 0) {
            return;
        }
        h->valid_until = hold_valid(h->asked_at, h->renewed_ms);
        h->renew_at = h->asked_at + h->run->options->lease_ms / 3;
        h->pause = 0;
        if (h->complained) {
            say_verbose("the lock is confirmed again");
        }
        h->complained = false;
    } else if (reply_is_error(reply, "NOTHELD")) {
        h->lost = true;
    } else {
        if (!h->complained) {
            print_message("cannot renew the lock: %s; trying on",
                          reply->type == REDIS_REPLY_ERROR ? reply->str
                                                           : "a strange answer");
            h->complained = true;
        }
        h->renewed_ms = 0;
        h->renew_at = now + AGAIN_MS;
    }
}

static void send_renew(struct hold *h, uint64_t now)
{
    const char *words[LINK_WORDS_MAX];
    char lease[NUMBER_MAX];

    (void)snprintf(lease, sizeof(lease), "%" PRIu64, h->run->options->lease_ms);
    for (size_t i = 0; i < run_name_count(h->run); i++) {
        hold_words(h->run, "RENEW", i, words);
        hold_words_add(words, "LEASE", lease);
        link_send(&h->link, words);
    }
    h->asked = run_name_count(h->run);
    h->renewed_ms = UINT64_MAX;
    h->asked_at = now;
}

/* --- the link that learns of a loss ----------------------------------- */

static void subscribe_to(struct hold *h, const char *kind)
{
    char channels[RUN_NAMES_MAX][CHANNEL_MAX];
    const char *words[RUN_NAMES_MAX + 2] = { "SUBSCRIBE" };

    for (size_t i = 0; i < run_name_count(h->run); i++) {
        (void)snprintf(channels[i], sizeof(channels[i]), "%s:%s", kind,
                       run_name(h->run, i));
        words[i + 1] = channels[i];
    }
    link_send(&h->ear, words);
}

static void open_ear(struct hold *h, uint64_t now)
{
    h->ear_at = now + answer_ms(h);
    if (link_open(&h->ear, &h->run->options->target)) {
        /* Each by itself: a user without a right to one kind still has the others. */
        subscribe_to(h, "lost");
        subscribe_to(h, "uncertain");
        subscribe_to(h, "expired");
    }
}

/* Whether the payload is `<owner> <token>` with a token of ours. */
static bool is_ours(const struct hold *h, const redisReply *payload)
{
    const char *space = payload->type == REDIS_REPLY_STRING
                            ? memrchr(payload->str, ' ', (size_t)payload->len)
                            : NULL;
    struct span left = span_str(h->run->token);

    while (space != NULL && left.len != 0) {
        if (span_eq(span_next(&left, ' '), span_str(space + 1))) {
            return true;
        }
    }
    return false;
}

static void on_notice(struct hold *h, const redisReply *reply, uint64_t now)
{
    const redisReply *const *parts = (const redisReply *const *)reply->element;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        parts[0]->type != REDIS_REPLY_STRING) {
        return;
    }
    if (strcmp(parts[0]->str, "message") != 0) {
        h->renew_at = now; /* a loss before the subscription shows in a renewal */
    } else if (is_ours(h, parts[2])) {
        bool doubt = strncmp(parts[1]->str, "uncertain:", 10) == 0;

        h->lost = h->lost || !doubt;
        h->renew_at = now;
    }
}

static void step_ear(struct hold *h, short revents, uint64_t now)
{
    redisReply *reply;

    (void)link_work(&h->ear, revents);
    while ((reply = link_reply(&h->ear)) != NULL) {
        on_notice(h, reply, now);
        freeReplyObject(reply);
    }
    if (h->ear.state == LINK_CLOSED && now >= h->ear_at) {
        open_ear(h, now);
    }
}

/* --- both links ------------------------------------------------------- */

void hold_poll(const struct hold *h, struct pollfd *fds)
{
    const struct link *links[] = { &h->link, &h->ear };

    for (int i = 0; i < 2; i++) {
        fds[i] = (struct pollfd){
            .fd = links[i]->state == LINK_CLOSED ? -1 : links[i]->fd,
            .events = link_events(links[i]),
        };
    }
}

/* Handles the connection's events, and connects if it is closed. */
static void step_link(struct hold *h, short revents, uint64_t now)
{
    struct link *l = &h->link;
    bool was_open = l->state != LINK_CLOSED;
    redisReply *reply;

    (void)link_work(l, revents);
    while ((reply = link_reply(l)) != NULL) {
        if (h->asked != 0) {
            on_answer(h, reply, now);
        }
        freeReplyObject(reply);
    }
    if (l->state != LINK_CLOSED && h->asked != 0 && now >= h->asked_at + answer_ms(h)) {
        link_close(l);
        (void)snprintf(l->error, sizeof(l->error), "no answer in time");
    }
    if (was_open && l->state == LINK_CLOSED) {
        on_broken(h, now);
    }
    if (l->state == LINK_CLOSED && now >= h->open_at &&
        !link_open(l, &h->run->options->target)) {
        on_broken(h, now);
    }
}

void hold_step(struct hold *h, const struct pollfd *fds, uint64_t now)
{
    step_link(h, fds[0].revents, now);
    step_ear(h, fds[1].revents, now);
    if (h->link.state != LINK_CLOSED && h->asked == 0 && !h->lost &&
        now >= h->renew_at) {
        send_renew(h, now);
        (void)link_work(&h->link, 0);
    }
}

uint64_t hold_next(const struct hold *h)
{
    uint64_t at = h->lost                        ? CTL_FOREVER
                  : h->link.state == LINK_CLOSED ? h->open_at
                  : h->asked != 0                ? h->asked_at + answer_ms(h)
                                                 : h->renew_at;

    return h->ear.state == LINK_CLOSED && h->ear_at < at ? h->ear_at : at;
}

/* --- release ---------------------------------------------------------- */

/* Sends the UNLOCKs. True: they were answered, and *ret says whether they freed all. */
static bool send_unlock(struct hold *h, bool again, bool *ret)
{
    const char *words[LINK_WORDS_MAX];
    size_t count = run_name_count(h->run);
    redisReply *reply;
    bool answered = true;

    for (size_t i = 0; i < count; i++) {
        hold_words(h->run, "UNLOCK", i, words);
        link_send(&h->link, words);
    }
    *ret = true;
    /* Renewals may be in flight: their answers come first. */
    for (size_t left = h->asked + count; left > 0; left--) {
        reply = link_wait(&h->link, answer_ms(h));
        if (reply == NULL) {
            return false;
        }
        if (left <= count) {
            bool freed = reply->type == REDIS_REPLY_INTEGER;
            bool known = freed || reply_is_error(reply, "NOTHELD");

            *ret = *ret && (freed || again);
            answered = answered && known;
            if (!known) {
                (void)snprintf(h->link.error, sizeof(h->link.error), "%s",
                               reply->type == REDIS_REPLY_ERROR ? reply->str : "?");
            }
        }
        freeReplyObject(reply);
    }
    h->asked = 0;
    return answered;
}

bool hold_release(struct hold *h)
{
    uint64_t end = clock_boot_ms() + RELEASE_MS;
    bool freed = true;
    bool again = false;

    for (;;) {
        /* A renewal that a connection has not sent yet goes with that connection. */
        h->asked = h->link.state == LINK_OPEN ? h->asked : 0;
        if (h->link.state == LINK_OPEN ||
            link_connect(&h->link, &h->run->options->target, ANSWER_MIN_MS)) {
            if (send_unlock(h, again, &freed)) {
                return freed;
            }
            again = true;
        }
        if (clock_boot_ms() >= end) {
            break;
        }
        (void)poll(NULL, 0, PAUSE_MIN_MS * 5);
    }
    print_message("cannot release the lock: %s; it ends with its lease", h->link.error);
    return true;
}
