#include "latchctl/options.h"

#include "latchctl/show.h"
#include "latchd-config.h"
#include "latchd/protocol.h"
#include "util/text.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONG_NAME_MAX = 32,
    LONG_FIRST = 256, /* above the letters of short options */
};

/* Times and numbers of the command line. */

static bool options_wrong(const char *option, const char *why);

/* Reads a time: seconds, possibly with a fraction, or a number with a unit. */
static bool options_read_time(const char *option, const char *text, uint64_t min,
                              uint64_t *ret)
{
    char why[64];
    char *end;
    double seconds;

    if (!parse_msec(span_str(text), ret) || text[strspn(text, "0123456789")] == '\0') {
        seconds = strtod(text, &end);
        if (text[strspn(text, "0123456789.")] != '\0' || end == text || *end != '\0' ||
            seconds > 1e9) {
            return options_wrong(
                option, "a time is such as 0.5, 30 (seconds), 500ms, 5m or 1h");
        }
        *ret = (uint64_t)(seconds * 1000 + 0.5);
    }
    if (*ret < min) {
        (void)snprintf(why, sizeof(why), "that is too short: at least %" PRIu64 "ms",
                       min);
        return options_wrong(option, why);
    }
    return true;
}

static bool options_read_code(const char *option, const char *text, int *ret)
{
    uint64_t code;

    if (!parse_u64(span_str(text), 255, &code)) {
        return options_wrong(option, "an exit code is a number from 0 to 255");
    }
    *ret = (int)code;
    return true;
}

static bool options_check_number(const char *option, const char *text, uint64_t min,
                                 uint64_t max)
{
    char why[64];
    uint64_t number;

    if (!parse_u64(span_str(text), max, &number) || number < min) {
        (void)snprintf(why, sizeof(why), "a number from %" PRIu64 " to %" PRIu64, min,
                       max);
        return options_wrong(option, why);
    }
    return true;
}

static bool read_port(struct options *o, const char *text)
{
    uint64_t port;

    if (!parse_u64(span_str(text), 65535, &port) || port == 0) {
        return options_wrong("--port", "a port is a number from 1 to 65535");
    }
    target_set(&o->target.port, text);
    target_set(&o->target.path, NULL);
    return true;
}

static bool read_url(struct options *o, const char *option, const char *url)
{
    char err[TARGET_ERROR_MAX];

    return target_set_url(&o->target, url, err, sizeof(err)) ||
           options_wrong(option, err);
}

static bool options_read_environment(struct options *o)
{
    const char *url = getenv("LATCHD_URL");
    const char *password = getenv("LATCHCTL_AUTH");

    if (password == NULL) {
        password = getenv("REDISCLI_AUTH");
    }
    target_set(&o->target.password, password);
    return url == NULL || *url == '\0' || read_url(o, "LATCHD_URL", url);
}

/* Whether the options that select the latchd fit together. */
static bool options_check_target(const struct options *o)
{
    char err[TARGET_ERROR_MAX];

    return target_check_tls(&o->target, err, sizeof(err)) || options_wrong("TLS", err);
}

static bool check_length(const char *option, const char *text, uint64_t min,
                         uint64_t max)
{
    char why[64];

    (void)snprintf(why, sizeof(why), "it has %" PRIu64 " to %" PRIu64 " bytes", min,
                   max);
    return (strlen(text) >= min && strlen(text) <= max) || options_wrong(option, why);
}

/* Reads an option of terms.def; its value is in `optarg`. */
static bool read_term(struct options *o, size_t at)
{
    const struct term *t = &TERMS[at];
    char option[LONG_NAME_MAX];
    uint64_t ms;

    (void)snprintf(option, sizeof(option), "--%s", t->name);
    o->has |= 1U << at;
    o->terms[at] = t->type == TERM_FLAG ? "" : optarg;
    switch (t->type) {
    case TERM_FLAG:
        break;
    case TERM_MS:
        if (!options_read_time(option, optarg, t->min, &ms)) {
            return false;
        }
        (void)snprintf(o->times[at], sizeof(o->times[at]), "%" PRIu64, ms);
        o->terms[at] = o->times[at];
        break;
    case TERM_NUMBER:
    case TERM_SMALL:
        return options_check_number(option, optarg, t->min, t->max);
    case TERM_WORD:
    case TERM_TEXT:
        if (at == OPTION_AT_TRACE && *optarg == '\0') {
            o->terms[at] = NULL; /* nobody traces: $TRACEPARENT is empty */
            break;
        }
        return check_length(option, optarg, t->min, t->max);
    }
    return true;
}

/* The first option in a set. */
static const char *first_term(unsigned bits)
{
    size_t i = 0;

    while ((bits & 1U << i) == 0) {
        i++;
    }
    return TERMS[i].name;
}

/* Whether all other options go with that one, as its row says. */
static bool check_term(const struct options *o, const struct term *t)
{
    char option[LONG_NAME_MAX];
    char why[160];

    (void)snprintf(option, sizeof(option), "--%s", t->name);
    if ((t->needs & ~o->has) != 0) {
        (void)snprintf(why, sizeof(why), "it needs --%s",
                       first_term(t->needs & ~o->has));
        return options_wrong(option, why);
    }
    if ((t->without & o->has) != 0) {
        (void)snprintf(why, sizeof(why), "it does not go with --%s%s%s",
                       first_term(t->without & o->has), *t->why == '\0' ? "" : ": ",
                       t->why);
        return options_wrong(option, why);
    }
    if (o->more_count != 0 && (t->takers & FOR_MLOCK) == 0) {
        return options_wrong(option, "it does not go with --and");
    }
    return true;
}

/* Whether the options that say how a lock is taken fit together. */
static bool options_check_lock(struct options *o)
{
    unsigned kinds = o->has & OPT_KINDS;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (o->terms[i] != NULL && !check_term(o, &TERMS[i])) {
            return false;
        }
    }
    if ((kinds & (kinds - 1)) != 0) {
        return options_wrong(first_term(kinds),
                             "only one of --fair, --read, --write and --permits");
    }
    if ((o->has & OPT_ATLEAST) == 0) {
        return true;
    }
    /* The lock is tried once: who waits would run the job right after the time. */
    if (o->wait_ms != CTL_FOREVER && o->wait_ms != 0) {
        return options_wrong("--at-least", "it does not go with --wait: it tries once");
    }
    o->wait_ms = 0;
    return true;
}

enum {
    ALL = ~0,
    RUN = 1 << CTL_RUN,
    TOP = 1 << CTL_TOP,
    WHY = 1 << CTL_WHY,
    LS = 1 << CTL_LS,
    FORCE = 1 << CTL_FORCE,
    LEADER = 1 << CTL_LEADER,
    LATCH = 1 << CTL_LATCH,
    LOCK = 1 << CTL_LOCK,
    UNLOCK = 1 << CTL_UNLOCK,
    TAKES = RUN | LOCK,
    PRINTS = LOCK | UNLOCK | TOP | WHY | LS | LEADER | LATCH | FORCE,
    LEASE_MIN_MS = 1000, /* with less, an ordinary pause would lose the lock */
    LEASE_DEFAULT_MS = 30000,
    KILL_AFTER_DEFAULT_MS = 10000,
    INTERVAL_DEFAULT_MS = 1000,
    INTERVAL_MIN_MS = 100,
    COUNT_MAX = 10000,
    WORDS_MAX = 4,
};

const struct term TERMS[] = {
#define TERM(text, kind, field, least, most, limit, commands, needed, excluded,        \
             reason, ctl, ctl_commands, value, sentence)                               \
    { #text,    TERM_##kind, least, most,         commands, needed,                    \
      excluded, reason,      ctl,   ctl_commands, value,    sentence },
#define OPTION(...) TERM(__VA_ARGS__)
#include "latchd/terms.def"
};

/* The text of --help: the lines of one subcommand, or all. */

static const struct help_line {
    unsigned commands; /* 0: only without a subcommand */
    const char *text;
} USAGE[] = {
    { RUN, "  run NAME [--] COMMAND [ARGUMENT ...] | run NAME -c TEXT\n"
           "      take the lock NAME, run COMMAND, release the lock\n" },
    { LOCK, "  lock NAME --lease TIME\n"
            "      take the lock NAME, and print its token\n" },
    { UNLOCK, "  unlock NAME --token TOKEN\n"
              "      release that lock\n" },
    { TOP, "  top\n"
           "      show the busiest names, live\n" },
    { WHY, "  why NAME\n"
           "      tell who holds NAME, who waits for it, and what to do about it\n" },
    { LS, "  ls [GLOB]\n"
          "      list the names that clients of this latchd hold or wait for\n" },
    { LEADER, "  leader NAME\n"
              "      print the only holder of NAME: token, owner and data\n" },
    { LATCH, "  latch NAME set N | count | await | delete | info\n"
             "      set a latch, count it down, wait until it is open\n" },
    { FORCE, "  force NAME --any | --token TOKEN | --owner OWNER\n"
             "      free NAME; its holder hears that the lock is lost\n" },
}, BEFORE_TERMS[] = {
    { 0, "Which latchd:\n"
         "  -h, --host HOST     default: 127.0.0.1\n"
         "  -p, --port PORT     default: 5625\n"
         "  -s, --socket PATH   a unix socket\n"
         "  -u, --uri URL       redis://[user:password@]host[:port][,host[:port] ...],\n"
         "                      rediss:// for TLS, or unix:///path; default: LATCHD_URL\n"
         "      --user USER     the password is in LATCHCTL_AUTH or REDISCLI_AUTH\n"
         "  -a, --pass PASSWORD visible to all who can list processes\n"
         "      --tls           speak TLS; the system's authorities sign the certificate\n"
         "      --cacert FILE, --cacertdir DIR\n"
         "                      trust these authorities instead\n"
         "      --sni NAME      the certificate is for NAME instead of HOST\n"
         "      --insecure      accept any certificate\n"
         "      --cert FILE, --key FILE\n"
         "                      the certificate to show to latchd, and its key\n" },
    { 0, "\nAll but run:\n" },
    { PRINTS, "      --json          print JSON\n" },
    { 0, "\nrun and lock:\n" },
    { RUN | LOCK | LATCH, "  -w, --wait TIME     give up after that time; default: never\n"
                          "  -n, --no-wait       try once\n" },
}, AFTER_TERMS[] = {
    { RUN, "      --and NAME      take this lock, too: all or none\n"
           "  -c, --command TEXT  have sh run TEXT, in place of COMMAND\n"
           "      --lease TIME    how long the lock outlives a machine that died;\n"
           "                      default: 30s; renewed every third of it\n"
           "  -k, --kill-after TIME\n"
           "                      between SIGTERM and SIGKILL when the lock is lost;\n"
           "                      default: 10s, at most the rest of the lease\n" },
    { LOCK, "      --lease TIME    lock: how long the lock is held; not renewed\n" },
    { RUN | LOCK | LATCH,
      "  -E, --conflict-exit-code N\n"
      "                      exit status if --wait or --queue gave up; default: 1\n" },
    { RUN, "      --lost-exit-code N\n"
           "                      exit status if the lock was lost; default: 124\n" },
    { RUN | LOCK, "      --verbose       report each step on standard error\n" },
    { 0, "\ntop:\n" },
    { TOP, "      --interval TIME time between two looks; default: 1s\n"
           "      --once          print one table, and exit\n"
           "      --sort ORDER    waiters, wait, held or name\n"
           "      --count N       at most N names\n" },
    { 0, "\nls:\n" },
    { LS, "      --match GLOB    as GLOB\n"
          "      --count N       at most N names\n"
          "      --all           all names that are held in Redis\n" },
    { 0, "\nleader:\n" },
    { LEADER, "      --follow        print each change as a line, until killed\n" },
    { 0, "\nlatch (also -w, -n, -E):\n" },
    { LATCH, "      --id ID         set and count: takes effect once, however often sent\n" },
    { 0, "\nforce:\n" },
    { FORCE, "      --any, --token TOKEN, --owner OWNER\n"
             "                      which holder loses the lock\n"
             "      --match GLOB    instead of NAME: show the holders, ask, free them\n"
             "      --yes           do not ask\n" },
    { 0, "\n`latchctl SUBCOMMAND --help` has the options of one. See latchctl(1)." },
    { ALL, "\nTIME is in seconds, or has a unit: 500ms, 30s, 5m, 1h, 1d.\n" },
};

/* Of a subcommand, or of all if it is NULL. */
static void print_lines(const struct help_line *lines, size_t count,
                        const struct options *o)
{
    for (size_t i = 0; i < count; i++) {
        if (o == NULL || (lines[i].commands & (1U << o->command)) != 0) {
            (void)fputs(lines[i].text, stdout);
        }
    }
}

/* A line for an option of terms.def. */
static void print_term(const struct term *t)
{
    char words[64];
    size_t len = (size_t)snprintf(words, sizeof(words), "--%s ", t->name);

    for (const char *at = t->type == TERM_MS ? "time" : t->argument; *at != '\0';
         at++) {
        words[len++] = (char)toupper((unsigned char)*at);
    }
    words[len] = '\0';
    printf("      %-15s %s\n", words, t->help);
}

/* The help of a subcommand, or of all if it is NULL. False: stdout cannot be written.
 */
static bool print_help(const struct options *o)
{
#define LINES(of) of, sizeof(of) / sizeof((of)[0])
    (void)puts("Usage: latchctl [options] SUBCOMMAND ...\n");
    print_lines(LINES(USAGE), o);
    (void)puts("");
    print_lines(LINES(BEFORE_TERMS), o);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (*TERMS[i].name != '\0' &&
            (o == NULL || (TERMS[i].commands & TAKES & (1U << o->command)) != 0)) {
            print_term(&TERMS[i]);
        }
    }
    print_lines(LINES(AFTER_TERMS), o);
#undef LINES
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

/* How an option is read, most of them into a field. */
enum option_kind {
    READ_FLAG, /* bool */
    READ_NO_WAIT,
    READ_VERBOSE,
    READ_HELP,
    READ_VERSION,
    READ_TEXT,   /* const char *, in argv; from here on options have a value */
    READ_TARGET, /* char *, of the target */
    READ_TIME,   /* uint64_t, ms */
    READ_CODE,   /* int */
    READ_COUNT,
    READ_SORT,
    READ_HOST,
    READ_PORT,
    READ_SOCKET,
    READ_URL,
    READ_SHELL,
    READ_AND,
};

#define AT(field) offsetof(struct options, field)

static const struct ctl_option {
    const char *name;
    char letter; /* 0: none; options with the same one are the same */
    enum option_kind kind;
    int commands; /* the subcommands that it is for */
    size_t at;
    uint64_t min; /* TIME */
} OPTIONS[] = {
#define CTL_COMMAND(...)
#define CTL_OPTION(name_, letter_, kind_, commands_, at_, min_, ...)                   \
    { name_, letter_, READ_##kind_, commands_, at_, min_ },
#include "latchctl/options.def"
};

enum { OPTIONS_COUNT = sizeof(OPTIONS) / sizeof(OPTIONS[0]) };

/* The table for getopt_long(): OPTIONS, then the options of terms.def. `val` is a
 * letter, or LONG_FIRST and the place here. */
static struct option LONG[OPTIONS_COUNT + OPTION_COUNT + 1];

#undef CTL_COMMAND
#undef CTL_OPTION

static const char *const NAMES[] = {
#define CTL_COMMAND(id, name, ...) [CTL_##id] = (name),
#define CTL_OPTION(...)
#include "latchctl/options.def"
};

/* Prints an error about an option; returns false. */
static bool options_wrong(const char *option, const char *why)
{
    print_message("%s: %s", option, why);
    return false;
}

static bool read_count(struct options *o, const char *text)
{
    return options_check_number("--count", text, 1, COUNT_MAX) &&
           parse_u64(span_str(text), COUNT_MAX, &o->count);
}

static bool read_sort(struct options *o, const char *text)
{
    static const char *const SORTS[] = { "waiters", "wait", "held", "name" };

    for (size_t i = 0; i < sizeof(SORTS) / sizeof(SORTS[0]); i++) {
        if (strcmp(text, SORTS[i]) == 0) {
            o->sort = SORTS[i];
            return true;
        }
    }
    return options_wrong("--sort", "it is one of waiters, wait, held and name");
}

static bool check_name(const char *option, const char *name)
{
    return (*name != '\0' && strlen(name) <= LATCHD_NAME_MAX) ||
           options_wrong(option, "a name has 1 to 512 bytes");
}

/* Reads an option; its value is in `optarg`. */
static bool read_option(struct options *o, const struct ctl_option *row)
{
    void *field = (char *)o + row->at;
    char option[LONG_NAME_MAX];

    (void)snprintf(option, sizeof(option), "--%s", row->name);
    switch (row->kind) {
    case READ_FLAG:
        *(bool *)field = true;
        return true;
    case READ_TEXT:
        *(const char **)field = optarg;
        return true;
    case READ_TARGET:
        target_set(field, optarg);
        return true;
    case READ_TIME:
        return options_read_time(option, optarg, row->min, field);
    case READ_CODE:
        return options_read_code(option, optarg, field);
    case READ_COUNT:
        return read_count(o, optarg);
    case READ_SORT:
        return read_sort(o, optarg);
    case READ_HOST:
        target_set(&o->target.host, optarg);
        target_set(&o->target.path, NULL);
        target_set_one(&o->target);
        return true;
    case READ_PORT:
        return read_port(o, optarg);
    case READ_SOCKET:
        target_set(&o->target.path, optarg);
        o->target.tls.by_url = false;
        return true;
    case READ_URL:
        return read_url(o, option, optarg);
    case READ_NO_WAIT:
        o->wait_ms = 0;
        return true;
    case READ_VERBOSE:
        say_set_verbose();
        return true;
    case READ_SHELL:
        o->shell[0] = (char *)"sh";
        o->shell[1] = (char *)"-c";
        o->shell[2] = optarg;
        return true;
    case READ_AND:
        if (o->more_count == OPTIONS_MORE_MAX) {
            return options_wrong(option, "more than 15 further names");
        }
        o->more[o->more_count++] = optarg;
        return check_name(option, optarg);
    case READ_HELP:
    case READ_VERSION:
        break;
    }
    return true;
}

static void fill_long(void)
{
    int count = 0;

    for (; count < OPTIONS_COUNT; count++) {
        const struct ctl_option *row = &OPTIONS[count];

        LONG[count] = (struct option){
            .name = row->name,
            .has_arg = row->kind < READ_TEXT ? no_argument : required_argument,
            .val = row->letter != 0 ? row->letter : LONG_FIRST + count,
        };
    }
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct term *t = &TERMS[i];

        if (*t->name != '\0') {
            LONG[count] = (struct option){
                .name = t->name,
                .has_arg = t->type == TERM_FLAG ? no_argument : required_argument,
                .val = LONG_FIRST + OPTIONS_COUNT + i,
            };
            count++;
        }
    }
}

/* The place in OPTIONS, or behind them in terms.def, of what getopt_long() found. */
static size_t place_of(int option)
{
    size_t i = 0;

    if (option >= LONG_FIRST) {
        return (size_t)(option - LONG_FIRST);
    }
    while (OPTIONS[i].letter != option) {
        i++;
    }
    return i;
}

/* Whether an option fits the subcommand, which may come after it. */
static bool option_fits(const struct options *o, size_t place)
{
    const struct term *t = &TERMS[place < OPTIONS_COUNT ? 0 : place - OPTIONS_COUNT];
    bool is_term = place >= OPTIONS_COUNT;
    unsigned commands = is_term ? t->commands : (unsigned)OPTIONS[place].commands;

    if ((commands & (1U << o->command)) == 0) {
        print_message("--%s is not an option of `latchctl %s`",
                      is_term ? t->name : OPTIONS[place].name, NAMES[o->command]);
        return false;
    }
    return true;
}

static bool read_command(struct options *o, const char *word)
{
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        if (strcmp(word, NAMES[i]) == 0) {
            o->command = (enum ctl_command)i;
            return true;
        }
    }
    return options_wrong(word, "there is no such subcommand, see latchctl --help");
}

struct words {
    const char *list[WORDS_MAX]; /* the subcommand, the name; latch: what to do */
    int count;
    uint64_t seen; /* a bit for each of OPTIONS that is given */
};

/* Reads options up to the next word that is none. */
static enum options_outcome read_options(struct options *o, struct words *w, int argc,
                                         char **argv)
{
    int option;

    while (optind < argc && strcmp(argv[optind], "--") != 0 &&
           (option = getopt_long(argc, argv, "+h:p:s:u:a:w:nc:k:E:", LONG, NULL)) !=
               -1) {
        size_t place = option == '?' ? 0 : place_of(option);

        if (option == '?') {
            return OPTIONS_WRONG;
        }
        if (place < OPTIONS_COUNT && OPTIONS[place].kind == READ_HELP) {
            return print_help(w->count == 0 ? NULL : o) ? OPTIONS_SAID : OPTIONS_WRONG;
        }
        if (place < OPTIONS_COUNT && OPTIONS[place].kind == READ_VERSION) {
            return puts("latchctl " LATCHD_VERSION) < 0 ? OPTIONS_WRONG : OPTIONS_SAID;
        }
        w->seen |= place < OPTIONS_COUNT ? UINT64_C(1) << place : 0;
        if (place < OPTIONS_COUNT ? !read_option(o, &OPTIONS[place])
                                  : !read_term(o, place - OPTIONS_COUNT)) {
            return OPTIONS_WRONG;
        }
    }
    return OPTIONS_GO;
}

/* One name, and whose hold it is; or all that match. */
static bool check_force(const struct options *o)
{
    int whose = (o->any ? 1 : 0) + (o->token != NULL) + ((o->has & OPT_OWNER) != 0);

    if (o->match != NULL && (o->name != NULL || whose != 0)) {
        return options_wrong("--match",
                             "it takes the place of NAME, --any, --token and "
                             "--owner");
    }
    if (o->yes && o->match == NULL) {
        return options_wrong("--yes", "it needs --match");
    }
    if (o->json && o->match != NULL && !o->yes) {
        return options_wrong("--json", "with --match it needs --yes: it does not ask");
    }
    if (o->match == NULL && whose != 1) {
        return options_wrong("force", "give exactly one of --any, --token and --owner");
    }
    return true;
}

static bool check_options(struct options *o, const struct words *w)
{
    bool named = o->command != CTL_TOP && o->command != CTL_LS &&
                 (o->command != CTL_FORCE || o->match == NULL);

    for (size_t i = 0; i < OPTIONS_COUNT + OPTION_COUNT; i++) {
        bool given = i < OPTIONS_COUNT ? (w->seen >> i & 1) != 0
                                       : (o->has >> (i - OPTIONS_COUNT) & 1) != 0;

        if (given && !option_fits(o, i)) {
            return false;
        }
    }
    if (named && o->name == NULL) {
        return options_wrong(NAMES[o->command], "the NAME is missing");
    }
    if (named && !check_name(NAMES[o->command], o->name)) {
        return false;
    }
    if (!options_check_lock(o)) {
        return false;
    }
    if (*o->shell != NULL) {
        if (*o->words != NULL) {
            return options_wrong(*o->words, "the COMMAND is that of -c already");
        }
        o->words = o->shell;
    }
    if (o->command == CTL_RUN && *o->words == NULL) {
        return options_wrong("run", "the COMMAND is missing");
    }
    if (o->command == CTL_LOCK && o->lease_ms == 0) {
        return options_wrong("lock",
                             "--lease is missing: nobody renews the lock, and it "
                             "ends when that time is over");
    }
    if (o->command == CTL_UNLOCK && o->token == NULL) {
        return options_wrong("unlock", "--token is missing: it is what lock printed");
    }
    o->lease_ms = o->lease_ms == 0 ? LEASE_DEFAULT_MS : o->lease_ms;
    if (o->command != CTL_RUN && *o->words != NULL) {
        return options_wrong(*o->words, "this word is too many");
    }
    return o->command != CTL_FORCE || check_force(o);
}

/* How many words the subcommand has, with its own. */
static int words_of(const struct options *o)
{
    return o->command == CTL_LATCH ? WORDS_MAX : 2;
}

enum options_outcome options_parse(int argc, char **argv, struct options *ret)
{
    struct words w = { .count = 0 };
    enum options_outcome outcome;

    *ret = (struct options){
        .wait_ms = CTL_FOREVER,
        .kill_after_ms = KILL_AFTER_DEFAULT_MS,
        .conflict_code = CTL_EXIT_CONFLICT,
        .lost_code = CTL_EXIT_LOST,
        .interval_ms = INTERVAL_DEFAULT_MS,
        .sort = "waiters",
    };
    fill_long();
    target_init(&ret->target);
    if (!options_read_environment(ret)) {
        return OPTIONS_WRONG;
    }
    for (;;) {
        outcome = read_options(ret, &w, argc, argv);
        if (outcome != OPTIONS_GO) {
            return outcome;
        }
        if (optind >= argc || w.count == words_of(ret) ||
            strcmp(argv[optind], "--") == 0) {
            break;
        }
        if (w.count == 0 && !read_command(ret, argv[optind])) {
            return OPTIONS_WRONG;
        }
        w.list[w.count++] = argv[optind++];
    }
    if (w.count == 0) {
        print_message(
            "a subcommand is missing: run, lock, unlock, top, why, ls, leader, "
            "latch or force; see latchctl --help");
        return OPTIONS_WRONG;
    }
    optind += optind < argc && strcmp(argv[optind], "--") == 0;
    ret->name = w.count > 1 ? w.list[1] : NULL;
    ret->verb = w.count > 2 ? w.list[2] : NULL;
    ret->number = w.count > 3 ? w.list[3] : NULL;
    ret->words = argv + optind;
    if (ret->command == CTL_LS && ret->match == NULL) {
        ret->match = ret->name; /* `ls GLOB` */
        ret->name = NULL;
    }
    if ((ret->command == CTL_TOP || ret->command == CTL_LS) && ret->name != NULL) {
        return options_wrong(ret->name, "this word is too many") ? OPTIONS_GO
                                                                 : OPTIONS_WRONG;
    }
    return check_options(ret, &w) && options_check_target(ret) ? OPTIONS_GO
                                                               : OPTIONS_WRONG;
}

void options_fini(struct options *o)
{
    target_fini(&o->target);
}
