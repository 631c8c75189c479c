#include "latchctl/run_lock.h"

#include "latchctl/show.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Keeping the lock: renewed every third of its lease, over a new connection whenever
 * the old one is gone, until latchd says that it is lost, or its owner (run.c)
 * finds that its time is over.
 *
 * The lease is of the kind that latchd does not renew by itself: whether it is still
 * ours depends on what we hear ourselves, not on what connection latchd sees. */

enum {
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 500,
    ANSWER_MIN_MS = 500,
    ANSWER_MAX_MS = 5000,
    AGAIN_MS = 200, /* delay after a temporary error */
    RELEASE_MS = 3000,
    MARGIN_MS = 50,
    CHANNEL_MAX = 600,
};

/* When a lease with `left_ms` left ends. Like latchd itself, allows 1 % and 50 ms for
 * clocks that differ. */
static uint64_t hold_valid(uint64_t sent, uint64_t left_ms)
{
    uint64_t margin = left_ms / 100 + MARGIN_MS;

    return sent + (left_ms > margin ? left_ms - margin : 0);
}

/* Appends two words. */
static void hold_words_add(const char **words, const char *name, const char *value)
{
    while (*words != NULL) {
        words++;
    }
    words[0] = name;
    words[1] = value;
    words[2] = NULL;
}

static size_t run_name_count(const struct run *r)
{
    return 1 + r->options->more_count;
}

static const char *run_name(const struct run *r, size_t index)
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

/* Fills `words`, which has room for LINK_WORDS_MAX, with the LOCK or MLOCK of this run,
 * or with a RENEW or UNLOCK of one of its names. */
static void hold_words(const struct run *r, const char *verb, size_t index,
                       const char **words)
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
    if (strcmp(verb, "UNLOCK") != 0) {
        hold_words_add(words, "LEASE", r->lease);
    }
}

/* Sends a RENEW or UNLOCK of each name. */
static void send_each(const struct run *r, struct link *l, const char *verb)
{
    const char *words[LINK_WORDS_MAX];

    for (size_t i = 0; i < run_name_count(r); i++) {
        hold_words(r, verb, i, words);
        link_send(l, words);
    }
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
            print_message("cannot renew the lock: %s; trying again",
                          reply->type == REDIS_REPLY_ERROR ? reply->str
                                                           : "an unexpected answer");
            h->complained = true;
        }
        h->renewed_ms = 0;
        h->renew_at = now + AGAIN_MS;
    }
}

static void send_renew(struct hold *h, uint64_t now)
{
    send_each(h->run, &h->link, "RENEW");
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
    size_t count = run_name_count(h->run);
    redisReply *reply;
    bool answered = true;

    send_each(h->run, &h->link, "UNLOCK");
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

/* Taking the lock: LOCK is repeated with one ID, over as many connections as it takes,
 * so that neither a broken connection nor a restart of latchd takes the lock twice, or
 * loses the place in the queue. */

enum {
    POLL_MS = 10000,    /* one long poll */
    SILENCE_MS = 10000, /* more than POLL_MS: then the connection counts as dead */
    CONNECT_MS = 5000,
    TAKE_PAUSE_MIN_MS = 50,
    TAKE_PAUSE_MAX_MS = 1000,
    GOODBYE_MS = 1000,
    WAIT_TEXT = 24,
    QUIET_MS = 1000, /* of a wait, before it is told */
};

/* The command without an answer. */
enum asked { ASKED_NOTHING, ASKED_LOCK, ASKED_RENEW };

struct take {
    struct run *run;
    enum asked asked;
    size_t renewals;  /* RENEW: how many answers are to come */
    uint64_t left_ms; /* the least that was answered; 0: one was refused */
    char refusal[TARGET_ERROR_MAX];
    uint64_t asked_at;
    uint64_t answer_by;
    uint64_t deadline; /* of the whole wait */
    uint64_t tell_at;  /* when the wait is told */
    uint64_t open_at;
    uint64_t pause;
    bool tried;   /* asked once, or failed to: enough for --no-wait */
    bool queued;  /* latchd may have queued the request */
    bool held;    /* the last answer: somebody else holds the lock */
    bool granted; /* granted, and its lease is being asked for */
    bool told;
    char trouble[TARGET_ERROR_MAX];
};

static void report_trouble(struct take *t, uint64_t now, const char *what)
{
    const char *about = t->run->options->target.about;

    (void)snprintf(t->trouble, sizeof(t->trouble), "%s", what);
    t->asked = ASKED_NOTHING;
    t->held = t->granted = false;
    t->run->token[0] = '\0';
    if (!t->tried && t->run->link.turn < t->run->options->target.address_count) {
        return; /* tries the next address at once */
    }
    t->tried = true;
    t->pause = t->pause == 0                  ? TAKE_PAUSE_MIN_MS
               : t->pause < TAKE_PAUSE_MAX_MS ? t->pause * 2
                                              : t->pause;
    t->open_at = now + t->pause;
    if (!t->told && t->deadline > now) {
        print_message("latchd at %s: %s; trying again", about == NULL ? "?" : about,
                      what);
        t->told = true;
    }
}

static void ask_lock(struct take *t, uint64_t now)
{
    const char *words[LINK_WORDS_MAX];
    char wait[WAIT_TEXT];
    uint64_t left = t->deadline > now ? t->deadline - now : 0;
    uint64_t wait_ms = left < POLL_MS ? left : POLL_MS;

    (void)snprintf(wait, sizeof(wait), "%" PRIu64, wait_ms);
    hold_words(t->run, "LOCK", 0, words);
    hold_words_add(words, "WAIT", wait);
    link_send(&t->run->link, words);
    t->asked = ASKED_LOCK;
    t->queued = true;
    t->asked_at = now;
    t->answer_by = now + wait_ms + SILENCE_MS;
}

/* The grant may be older than its answer. The lease of a renewal counts from when it
 * was sent. */
static void ask_renew(struct take *t, uint64_t now)
{
    send_each(t->run, &t->run->link, "RENEW");
    t->renewals = run_name_count(t->run);
    t->left_ms = UINT64_MAX;
    t->asked = ASKED_RENEW;
    t->asked_at = now;
    t->answer_by = now + SILENCE_MS;
}

/* Whether the answer to LOCK is a token, or that to MLOCK one for each name. */
static bool keep_tokens(struct run *r, const redisReply *reply)
{
    size_t at = 0;

    if (reply->type == REDIS_REPLY_INTEGER) {
        (void)snprintf(r->token, sizeof(r->token), "%lld", reply->integer);
        return true;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != run_name_count(r)) {
        return false;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        at += (size_t)snprintf(r->token + at, sizeof(r->token) - at, "%s%lld",
                               i == 0 ? "" : " ", reply->element[i]->integer);
    }
    return true;
}

static bool may_pass(const redisReply *reply)
{
    return reply_is_error(reply, "BACKEND") || reply_is_error(reply, "GOAWAY") ||
           reply_is_error(reply, "NOREPLICAS") || reply_is_error(reply, "UNBLOCKED");
}

/* Whether the LOCK was refused because of others. */
static bool is_conflict(const struct run *r, const redisReply *reply)
{
    return reply_is_error(reply, "NOTHELD") ||
           ((r->options->has & OPT_QUEUE) != 0 && reply_is_error(reply, "LIMIT"));
}

/* Whether the answer to one RENEW leaves it possible that the lock is held. */
static bool take_left(struct take *t, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER) {
        uint64_t left_ms = (uint64_t)reply->integer;

        t->left_ms = left_ms < t->left_ms ? left_ms : t->left_ms;
        return true;
    }
    if (reply->type != REDIS_REPLY_ERROR || !may_pass(reply)) {
        return false;
    }
    t->left_ms = 0;
    (void)snprintf(t->refusal, sizeof(t->refusal), "%s", reply->str);
    return true;
}

/* Handles an event. True: the wait is over, with *ret. */
static bool on_take_answer(struct take *t, const redisReply *reply, uint64_t now,
                           enum take_outcome *ret)
{
    struct run *r = t->run;
    bool renewed = t->asked == ASKED_RENEW;

    if (renewed && take_left(t, reply) && --t->renewals != 0) {
        return false; /* the answers to the others are not to be taken for a LOCK's */
    }
    t->asked = ASKED_NOTHING;
    if (renewed && t->renewals == 0 && t->left_ms != 0) {
        r->valid_until = hold_valid(t->asked_at, t->left_ms);
        *ret = TAKE_GRANTED;
        return true;
    }
    if (renewed && t->renewals == 0) {
        t->tried = true;
        report_trouble(t, now, t->refusal);
        return false;
    }
    if (keep_tokens(r, reply)) {
        t->granted = true;
        t->pause = 0;
    } else if (reply->type == REDIS_REPLY_NIL) {
        t->held = t->tried = true;
        t->pause = 0;
    } else if (reply->type == REDIS_REPLY_ERROR && may_pass(reply)) {
        t->tried = true;
        report_trouble(t, now, reply->str);
    } else {
        print_message("%s", reply->type == REDIS_REPLY_ERROR
                                ? reply->str
                                : "the server is no latchd");
        *ret = !renewed && is_conflict(r, reply) ? TAKE_CONFLICT : TAKE_FAILED;
        return true;
    }
    return false;
}

static void open_again(struct take *t, uint64_t now)
{
    struct target *target = &t->run->options->target;
    char err[TARGET_ERROR_MAX];

    if ((t->run->link.turn == 0 || t->pause >= TAKE_PAUSE_MAX_MS) &&
        !target_resolve(target, err, sizeof(err))) {
        report_trouble(t, now, err);
    } else if (!link_open(&t->run->link, target)) {
        report_trouble(t, now, t->run->link.error);
    } else {
        t->answer_by = now + CONNECT_MS;
    }
}

/* Does what fell due. True: the wait is over, with *ret. */
static bool on_time(struct take *t, uint64_t now, enum take_outcome *ret)
{
    struct link *l = &t->run->link;

    if (t->asked == ASKED_NOTHING && t->tried && now >= t->deadline && !t->granted) {
        if (!t->held) {
            print_message("latchd at %s: %s", t->run->options->target.about,
                          t->trouble);
        }
        *ret = t->held ? TAKE_CONFLICT : TAKE_FAILED;
        return true;
    }
    if (t->asked == ASKED_LOCK && now >= t->tell_at) {
        say_progress("waiting for %s; latchctl why tells who has it",
                     t->run->options->name);
        t->tell_at = CTL_FOREVER;
    }
    if (l->state != LINK_CLOSED && now >= t->answer_by &&
        (t->asked != ASKED_NOTHING || link_is_opening(l))) {
        link_close(l);
        report_trouble(t, now, "no answer in time");
    }
    if (l->state == LINK_CLOSED && now >= t->open_at) {
        open_again(t, now);
    }
    if (l->state == LINK_OPEN && t->asked == ASKED_NOTHING && now >= t->open_at) {
        if (t->granted) {
            ask_renew(t, now);
        } else {
            ask_lock(t, now);
        }
    }
    return false;
}

static int next_ms(const struct take *t, uint64_t now)
{
    bool answer = t->asked != ASKED_NOTHING || link_is_opening(&t->run->link);
    uint64_t at = answer ? t->answer_by : t->open_at;

    if (t->asked == ASKED_NOTHING && t->tried && t->deadline < at) {
        at = t->deadline;
    }
    at = t->asked == ASKED_LOCK && t->tell_at < at ? t->tell_at : at;
    return at <= now ? 0 : at - now > POLL_MS ? POLL_MS : (int)(at - now);
}

/* Handles an event. True: the wait is over, with *ret. */
static bool on_link(struct take *t, short revents, enum take_outcome *ret)
{
    struct link *l = &t->run->link;
    bool was_open = l->state != LINK_CLOSED;
    bool over = false;
    redisReply *reply;

    (void)link_work(l, revents);
    while (!over && t->asked != ASKED_NOTHING && (reply = link_reply(l)) != NULL) {
        over = on_take_answer(t, reply, clock_boot_ms(), ret);
        freeReplyObject(reply);
    }
    if (over || !was_open || l->state != LINK_CLOSED) {
        return over;
    }
    report_trouble(t, clock_boot_ms(), l->error);
    if (l->refused) {
        print_message("%s", l->error);
        *ret = TAKE_FAILED;
    }
    return l->refused;
}

/* Cancels the request, so that latchd keeps neither a place in the queue nor a grant.
 */
static void say_goodbye(struct take *t)
{
    struct run *r = t->run;

    link_close(&r->link);
    if (t->queued && link_connect(&r->link, &r->options->target, GOODBYE_MS)) {
        link_send(&r->link,
                  (const char *[]){ "CANCEL", r->options->name, "ID", r->id, NULL });
        send_each(r, &r->link, "UNLOCK");
        for (size_t i = 0; i <= run_name_count(r); i++) {
            freeReplyObject(link_wait(&r->link, GOODBYE_MS));
        }
    }
}

static enum take_outcome take_loop(struct take *t, int *ret_signal)
{
    enum take_outcome outcome = TAKE_FAILED;
    struct signalfd_siginfo info;

    while (!on_time(t, clock_boot_ms(), &outcome)) {
        struct pollfd fds[] = {
            { .fd = t->run->signals, .events = POLLIN },
            { .fd = t->run->link.state == LINK_CLOSED ? -1 : t->run->link.fd,
              .events = link_events(&t->run->link) },
        };

        (void)poll(fds, 2, next_ms(t, clock_boot_ms()));
        if ((fds[0].revents & POLLIN) != 0 &&
            read(t->run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
            info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR1 &&
            info.ssi_signo != SIGUSR2) {
            *ret_signal = (int)info.ssi_signo;
            return TAKE_SIGNAL;
        }
        if (on_link(t, fds[1].revents, &outcome)) {
            break;
        }
    }
    return outcome;
}

enum take_outcome take_lock(struct run *r, int *ret_signal)
{
    struct take t = { .run = r };
    uint64_t now = clock_boot_ms();
    enum take_outcome outcome;

    t.deadline = r->options->wait_ms >= CTL_FOREVER - now ? CTL_FOREVER
                                                          : now + r->options->wait_ms;
    t.tell_at = now + QUIET_MS;
    outcome = take_loop(&t, ret_signal);
    if (outcome != TAKE_GRANTED) {
        say_goodbye(&t);
        link_close(&r->link);
    }
    return outcome;
}
