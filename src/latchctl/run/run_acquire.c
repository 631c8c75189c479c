/* Taking the lock: LOCK is repeated with one ID, over as many connections as it takes,
 * so that neither a broken connection nor a restart of latchd takes the lock twice, or
 * loses the place in the queue. */
#include "latchctl/run/run.h"
#include "latchctl/show.h"
#include "util/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    POLL_MS = 10000,    /* one long poll */
    SILENCE_MS = 10000, /* more than POLL_MS: then the connection counts as dead */
    CONNECT_MS = 5000,
    PAUSE_MIN_MS = 50,
    PAUSE_MAX_MS = 1000,
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
    if (!t->tried && t->run->link.turn < t->run->options->target.address_count) {
        return; /* tries the next address at once */
    }
    t->tried = true;
    t->pause = t->pause == 0             ? PAUSE_MIN_MS
               : t->pause < PAUSE_MAX_MS ? t->pause * 2
                                         : t->pause;
    t->open_at = now + t->pause;
    if (!t->told && t->deadline > now) {
        print_message("latchd at %s: %s; trying on", about == NULL ? "?" : about, what);
        t->told = true;
    }
}

static void ask_lock(struct take *t, uint64_t now)
{
    const char *words[LINK_WORDS_MAX];
    char wait[WAIT_TEXT];
    char lease[WAIT_TEXT];
    uint64_t left = t->deadline > now ? t->deadline - now : 0;
    uint64_t wait_ms = left < POLL_MS ? left : POLL_MS;

    (void)snprintf(wait, sizeof(wait), "%" PRIu64, wait_ms);
    (void)snprintf(lease, sizeof(lease), "%" PRIu64, t->run->options->lease_ms);
    hold_words(t->run, "LOCK", 0, words);
    hold_words_add(words, "WAIT", wait);
    hold_words_add(words, "LEASE", lease);
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
    const char *words[LINK_WORDS_MAX];
    char lease[WAIT_TEXT];

    (void)snprintf(lease, sizeof(lease), "%" PRIu64, t->run->options->lease_ms);
    for (size_t i = 0; i < run_name_count(t->run); i++) {
        hold_words(t->run, "RENEW", i, words);
        hold_words_add(words, "LEASE", lease);
        link_send(&t->run->link, words);
    }
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
static bool on_answer(struct take *t, const redisReply *reply, uint64_t now,
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
        print_message("%s", reply->type == REDIS_REPLY_ERROR ? reply->str
                                                             : "that is no latchd");
        *ret = !renewed && is_conflict(r, reply) ? TAKE_CONFLICT : TAKE_FAILED;
        return true;
    }
    return false;
}

static void open_again(struct take *t, uint64_t now)
{
    struct target *target = &t->run->options->target;
    char err[TARGET_ERROR_MAX];

    if ((t->run->link.turn == 0 || t->pause >= PAUSE_MAX_MS) &&
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
        over = on_answer(t, reply, clock_boot_ms(), ret);
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
    const char *words[LINK_WORDS_MAX];

    link_close(&r->link);
    if (t->queued && link_connect(&r->link, &r->options->target, GOODBYE_MS)) {
        link_send(&r->link,
                  (const char *[]){ "CANCEL", r->options->name, "ID", r->id, NULL });
        for (size_t i = 0; i < run_name_count(r); i++) {
            hold_words(r, "UNLOCK", i, words);
            link_send(&r->link, words);
        }
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
