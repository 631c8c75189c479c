/* `latchctl top`: the most wanted names, live. An interval has at most two requests,
 * whose cost does not grow with the number of names. */
#include "latchctl/ask.h"
#include "latchctl/commands.h"
#include "latchctl/sample.h"
#include "latchctl/screen.h"
#include "latchctl/show.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    COUNT_DEFAULT = 20, /* for --once */
    COUNT_MOST = 100,   /* the most that latchd returns */
    ANSWER_MS = 5000,
    NUMBER_MAX = 24,
    COLUMNS_ONCE = 120,
};

struct top {
    struct options *options;
    struct screen screen;
    struct link link;
    struct sample now;
    struct sample before;
    redisReply *info; /* the first of two answers, until the second arrives */
    bool asked;
    uint64_t asked_at;
    uint64_t ask_at;
    const char *sort;
    int signals;
    sigset_t old_mask;
    bool over;
    int code;
    char trouble[TARGET_ERROR_MAX];
};

static void ask_both(struct link *l, uint64_t count)
{
    char number[NUMBER_MAX];

    (void)snprintf(number, sizeof(number), "%" PRIu64, count);
    link_send(l, (const char *[]){ "INFO", NULL });
    link_send(l, (const char *[]){ "LOCKS", "TOP", number, NULL });
}

static uint64_t count_of(const struct options *o)
{
    return o->count == 0           ? COUNT_DEFAULT
           : o->count < COUNT_MOST ? o->count
                                   : COUNT_MOST;
}

/* --- --once ----------------------------------------------------------- */

static int show_once(struct options *o)
{
    struct link l = { 0 };
    struct sample sample = { 0 };
    struct sample none = { 0 };
    struct buf out = { 0 };
    char number[NUMBER_MAX];
    redisReply *info = NULL;
    redisReply *top = NULL;
    int code = CTL_EXIT_FAILED;

    (void)snprintf(number, sizeof(number), "%" PRIu64, count_of(o));
    if (ask_open(&l, o)) {
        info = ask_daemon(&l, (const char *[]){ "INFO", NULL });
        top = info == NULL
                  ? NULL
                  : ask_daemon(&l, (const char *[]){ "LOCKS", "TOP", number, NULL });
    }
    if (top != NULL) {
        sample_read(&sample, clock_boot_ms(), info, top);
        sample_write(&sample, &none, o->sort, COLUMNS_ONCE, 0, &out);
        for (size_t i = 0; i < buf_len(&out); i++) {
            if (buf_ptr(&out)[i] != '\a' && putchar(buf_ptr(&out)[i]) == EOF) {
                break;
            }
        }
        code = fflush(stdout) == 0 ? 0 : CTL_EXIT_FAILED;
    }
    freeReplyObject(info);
    sample_fini(&sample);
    buf_reset(&out);
    link_close(&l);
    return code;
}

/* --- live display ----------------------------------------------------- */

static void draw_screen(struct top *t)
{
    struct buf out = { 0 };
    size_t columns;
    size_t rows;

    screen_size(&columns, &rows);
    if (t->trouble[0] != '\0') {
        buf_printf(&out, "\alatchd at %s: %s; trying on\n",
                   t->options->target.about == NULL ? "?" : t->options->target.about,
                   t->trouble);
        rows -= rows > 1;
    }
    if (t->now.at_ms != 0) {
        sample_write(&t->now, &t->before, t->sort, columns, rows - (rows > 1), &out);
    }
    if (t->now.at_ms != 0 && reply_count(t->now.top) + 6 < rows) {
        buf_printf(&out, "\nq quits; sorted by %s: w waiters, t wait, h held, n name\n",
                   t->sort);
    }
    screen_show(&out);
    buf_reset(&out);
}

static void fail_top(struct top *t, const char *why)
{
    (void)snprintf(t->trouble, sizeof(t->trouble), "%s", why);
    freeReplyObject(t->info);
    t->info = NULL;
    t->asked = false;
    t->ask_at = clock_boot_ms() + t->options->interval_ms;
    draw_screen(t);
}

static void on_answers(struct top *t, redisReply *top)
{
    sample_fini(&t->before);
    t->before = t->now;
    t->now = (struct sample){ 0 };
    sample_read(&t->now, t->asked_at, t->info, top);
    freeReplyObject(t->info);
    t->info = NULL;
    t->asked = false;
    t->trouble[0] = '\0';
    draw_screen(t);
}

static void on_reply(struct top *t, redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        char why[TARGET_ERROR_MAX];

        (void)snprintf(why, sizeof(why), "%s", reply->str);
        freeReplyObject(reply);
        link_close(&t->link);
        fail_top(t, why);
    } else if (t->info == NULL) {
        t->info = reply;
    } else {
        on_answers(t, reply);
    }
}

static void on_link(struct top *t, short revents)
{
    bool was_open = t->link.state != LINK_CLOSED;
    redisReply *reply;

    (void)link_work(&t->link, revents);
    while ((reply = link_reply(&t->link)) != NULL) {
        on_reply(t, reply);
    }
    if (was_open && t->link.state == LINK_CLOSED &&
        (t->asked || t->trouble[0] == '\0')) {
        fail_top(t, t->link.error);
    }
}

static void on_time(struct top *t, uint64_t now)
{
    size_t columns;
    size_t rows;

    if (t->asked && now >= t->asked_at + ANSWER_MS) {
        link_close(&t->link);
        fail_top(t, "no answer in time");
    }
    if (t->asked || now < t->ask_at) {
        return;
    }
    if (t->link.state == LINK_CLOSED && !link_open(&t->link, &t->options->target)) {
        fail_top(t, t->link.error);
        return;
    }
    screen_size(&columns, &rows);
    ask_both(&t->link, t->options->count != 0 ? count_of(t->options)
                       : rows < COUNT_MOST    ? rows
                                              : COUNT_MOST);
    t->asked = true;
    t->asked_at = now;
    t->ask_at = now + t->options->interval_ms;
    (void)link_work(&t->link, 0);
}

static void on_key(struct top *t, short revents)
{
    char key = 'q'; /* the default if the terminal is gone */
    ssize_t len = read(STDIN_FILENO, &key, 1);

    if (len == 0 && (revents & POLLHUP) == 0) {
        return;
    }
    switch (key) {
    case 'q':
    case 'Q':
        t->over = true;
        return;
    case 'w':
        t->sort = "waiters";
        break;
    case 't':
        t->sort = "wait";
        break;
    case 'h':
        t->sort = "held";
        break;
    case 'n':
        t->sort = "name";
        break;
    default:
        break;
    }
    draw_screen(t);
}

/* Ctrl-Z: restores the terminal for the shell, and takes it over again after `fg`. */
static void suspend_top(struct top *t)
{
    screen_leave(&t->screen);
    (void)raise(SIGSTOP);
    t->over = !screen_enter(&t->screen);
    draw_screen(t);
}

static void on_signal(struct top *t)
{
    struct signalfd_siginfo info;

    if (read(t->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    if (info.ssi_signo == SIGWINCH) {
        draw_screen(t);
    } else if (info.ssi_signo == SIGTSTP) {
        suspend_top(t);
    } else {
        t->over = true;
        t->code = info.ssi_signo == SIGINT ? 0 : CTL_EXIT_SIGNAL + (int)info.ssi_signo;
    }
}

static bool take_signals(struct top *t)
{
    static const int OURS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(OURS) / sizeof(OURS[0]); i++) {
        (void)sigaddset(&set, OURS[i]);
    }
    if (sigprocmask(SIG_BLOCK, &set, &t->old_mask) == 0) {
        t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    if (t->signals < 0) {
        print_message("signals: %s", strerror(errno));
    }
    return t->signals >= 0;
}

static void show_live(struct top *t)
{
    while (!t->over) {
        uint64_t now = clock_boot_ms();
        struct pollfd fds[3];
        uint64_t at;

        on_time(t, now);
        at = t->asked ? t->asked_at + ANSWER_MS : t->ask_at;
        fds[0] = (struct pollfd){ .fd = t->signals, .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
        fds[2] = (struct pollfd){ .fd = t->link.state == LINK_CLOSED ? -1 : t->link.fd,
                                  .events = link_events(&t->link) };
        (void)poll(fds, 3, at <= now ? 0 : (int)(at - now));
        if (fds[0].revents != 0) {
            on_signal(t);
        }
        if (!t->over && fds[1].revents != 0) {
            on_key(t, fds[1].revents);
        }
        if (!t->over) {
            on_link(t, fds[2].revents);
        }
    }
}

int ctl_top(struct options *o)
{
    struct top t = { .options = o, .sort = o->sort, .signals = -1 };

    if (o->once || isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
        return show_once(o);
    }
    /* A wrong address or password is reported before the screen is taken over. */
    if (!ask_open(&t.link, o)) {
        return CTL_EXIT_FAILED;
    }
    if (take_signals(&t) && screen_enter(&t.screen)) {
        show_live(&t);
        screen_leave(&t.screen);
    }
    link_close(&t.link);
    freeReplyObject(t.info);
    sample_fini(&t.now);
    sample_fini(&t.before);
    if (t.signals >= 0) {
        (void)close(t.signals);
    }
    return t.code;
}
