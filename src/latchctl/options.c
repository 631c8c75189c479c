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

/* The text of `latchctl --help`. */

static const char BEFORE[] =
    "usage: latchctl [options] run NAME [--] COMMAND [ARGUMENT ...]\n"
    "       latchctl [options] run NAME -c TEXT\n"
    "       latchctl [options] lock NAME --lease TIME | unlock NAME --token TOKEN\n"
    "       latchctl [options] top | why NAME | ls [GLOB] | leader NAME | force NAME\n"
    "       latchctl [options] latch NAME set N | count | await | delete | info\n"
    "\n"
    "  run    take the lock NAME, run COMMAND, release the lock\n"
    "  lock   take it and print its token, for a part of a script that ends with\n"
    "  unlock release it\n"
    "  top    the hottest names, live\n"
    "  why    who holds NAME, who waits for it, and what to do about it\n"
    "  ls     the names that are held or waited for\n"
    "  leader who holds NAME alone: token, owner and data\n"
    "  latch  set NAME, count it down, wait until it is open\n"
    "  force  free NAME, whatever its holder thinks\n"
    "\n"
    "Which latchd:\n"
    "  -h, --host HOST     127.0.0.1\n"
    "  -p, --port PORT     5625\n"
    "  -s, --socket PATH   a unix socket\n"
    "  -u, --uri URL       redis://[user:password@]host[:port][,host[:port] ...],\n"
    "                      rediss:// for TLS, or unix:///path; LATCHD_URL in the\n"
    "                      environment does the same\n"
    "      --user USER     the password is in LATCHCTL_AUTH or REDISCLI_AUTH\n"
    "  -a, --pass PASSWORD others can see this one\n"
    "      --tls           with TLS; its certificate must be of the system's "
    "authorities\n"
    "      --cacert FILE | --cacertdir DIR    or of these\n"
    "      --sni NAME      and for this name, instead of HOST\n"
    "      --insecure      or whatever it is\n"
    "      --cert FILE, --key FILE            the one to show to latchd\n"
    "\n"
    "run, and lock:\n"
    "  -w, --wait TIME     give up after so long; without it, never\n"
    "  -n, --no-wait       give up at once\n";

static const char AFTER[] =
    "      --and NAME      take this lock, too: all or none\n"
    "  -c, --command TEXT  run by the shell, in place of COMMAND\n"
    "      --lease TIME    how long the lock outlives a machine that died (30s);\n"
    "                      renewed every third of it while COMMAND runs; `lock`: "
    "never\n"
    "  -k, --kill-after TIME\n"
    "                      from TERM to KILL when the lock is lost (10s, and never\n"
    "                      beyond the lease)\n"
    "  -E, --conflict-exit-code N   not taken within --wait, --queue (1)\n"
    "      --lost-exit-code N       lost while COMMAND ran (124)\n"
    "      --verbose       say what happens\n"
    "\n"
    "top: --interval TIME, --once, --sort waiters|wait|held|name, --count N\n"
    "ls: [--match] GLOB, --count N, --all: also what others have left in Redis\n"
    "force: --any | --token T | --owner O; or --match GLOB instead of NAME, which "
    "shows\n"
    "       what is held and asks first (--yes: does not ask)\n"
    "latch: --id ID counts once, --wait TIME, --no-wait\n"
    "leader: --follow, each change on a line of its own\n"
    "\n"
    "TIME is in seconds, or with a unit: 500ms, 30s, 5m, 1h, 1d. latchctl(1) tells "
    "more.\n";

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

/* latchctl --help. False: stdout cannot be written. */
static bool print_help(void)
{
    (void)fputs(BEFORE, stdout);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (*TERMS[i].name != '\0') {
            print_term(&TERMS[i]);
        }
    }
    (void)fputs(AFTER, stdout);
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

/* Long options without a short form. */
enum {
    LONG_USER = 256,
    LONG_TLS,
    LONG_SNI,
    LONG_CACERT,
    LONG_CACERTDIR,
    LONG_CERT,
    LONG_KEY,
    LONG_INSECURE,
    LONG_HELP,
    LONG_VERSION,
    LONG_NO_WAIT,
    LONG_LEASE,
    LONG_KILL_AFTER,
    LONG_LOST_CODE,
    LONG_VERBOSE,
    LONG_INTERVAL,
    LONG_ONCE,
    LONG_SORT,
    LONG_TOKEN,
    LONG_ANY,
    LONG_MATCH,
    LONG_COUNT,
    LONG_FOLLOW,
    LONG_ID,
    LONG_ALL,
    LONG_YES,
    LONG_AND,
    LONG_TERM, /* and from there on the options of terms.def */
};

enum {
    LONG_NAME_MAX = 32,
    LONG_MAX_COUNT = 64, /* a bit of words.seen for each */
};

/* Times and numbers of the command line. */

static bool options_wrong(const char *option, const char *why);

/* Reads a time: seconds, possibly with a fraction, or a number with a unit. */
static bool options_read_time(const char *option, const char *text, uint64_t min,
                              uint64_t *ret)
{
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
        return options_wrong(option, "that is too short");
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

static void read_tls(struct target_tls *tls, int option)
{
    switch (option) {
    case LONG_TLS:
        tls->by_option = true;
        break;
    case LONG_INSECURE:
        tls->insecure = true;
        break;
    case LONG_SNI:
        target_set(&tls->sni, optarg);
        break;
    case LONG_CACERT:
        target_set(&tls->ca_cert_file, optarg);
        break;
    case LONG_CACERTDIR:
        target_set(&tls->ca_cert_dir, optarg);
        break;
    case LONG_CERT:
        target_set(&tls->cert_file, optarg);
        break;
    default:
        target_set(&tls->key_file, optarg);
        break;
    }
}

/* Reads an option that selects the latchd to talk to; its value is in `optarg`. */
static bool options_read_target(struct options *o, int option)
{
    switch (option) {
    case 'h':
        target_set(&o->target.host, optarg);
        target_set(&o->target.path, NULL);
        target_set_one(&o->target);
        return true;
    case 'p':
        return read_port(o, optarg);
    case 's':
        target_set(&o->target.path, optarg);
        o->target.tls.by_url = false;
        return true;
    case 'u':
        return read_url(o, "--uri", optarg);
    case 'a':
        target_set(&o->target.password, optarg);
        return true;
    case LONG_USER:
        target_set(&o->target.user, optarg);
        return true;
    default:
        read_tls(&o->target.tls, option);
        return true;
    }
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
#define OPTION(text, ...) { .word = #text, .name = "" },
#include "latchd/terms.def"
};

/* The options of terms.def follow: see add_terms(). */
static struct option LONG[LONG_MAX_COUNT] = {
    { "host", required_argument, NULL, 'h' },
    { "port", required_argument, NULL, 'p' },
    { "socket", required_argument, NULL, 's' },
    { "uri", required_argument, NULL, 'u' },
    { "url", required_argument, NULL, 'u' },
    { "user", required_argument, NULL, LONG_USER },
    { "pass", required_argument, NULL, 'a' },
    { "tls", no_argument, NULL, LONG_TLS },
    { "sni", required_argument, NULL, LONG_SNI },
    { "cacert", required_argument, NULL, LONG_CACERT },
    { "cacertdir", required_argument, NULL, LONG_CACERTDIR },
    { "cert", required_argument, NULL, LONG_CERT },
    { "key", required_argument, NULL, LONG_KEY },
    { "insecure", no_argument, NULL, LONG_INSECURE },
    { "help", no_argument, NULL, LONG_HELP },
    { "version", no_argument, NULL, LONG_VERSION },
    { "wait", required_argument, NULL, 'w' },
    { "timeout", required_argument, NULL, 'w' },
    { "no-wait", no_argument, NULL, LONG_NO_WAIT },
    { "nonblock", no_argument, NULL, LONG_NO_WAIT },
    { "lease", required_argument, NULL, LONG_LEASE },
    { "follow", no_argument, NULL, LONG_FOLLOW },
    { "id", required_argument, NULL, LONG_ID },
    { "command", required_argument, NULL, 'c' },
    { "and", required_argument, NULL, LONG_AND },
    { "kill-after", required_argument, NULL, 'k' },
    { "conflict-exit-code", required_argument, NULL, 'E' },
    { "lost-exit-code", required_argument, NULL, LONG_LOST_CODE },
    { "verbose", no_argument, NULL, LONG_VERBOSE },
    { "interval", required_argument, NULL, LONG_INTERVAL },
    { "once", no_argument, NULL, LONG_ONCE },
    { "sort", required_argument, NULL, LONG_SORT },
    { "token", required_argument, NULL, LONG_TOKEN },
    { "any", no_argument, NULL, LONG_ANY },
    { "match", required_argument, NULL, LONG_MATCH },
    { "count", required_argument, NULL, LONG_COUNT },
    { "all", no_argument, NULL, LONG_ALL },
    { "yes", no_argument, NULL, LONG_YES },
};

/* The subcommands that an option is for; other options are for all. */
static const struct {
    int option;
    int commands;
} FOR[] = {
    { 'w', TAKES | LATCH },
    { LONG_NO_WAIT, TAKES | LATCH },
    { LONG_LEASE, TAKES },
    { 'k', RUN },
    { 'E', TAKES | LATCH },
    { LONG_LOST_CODE, RUN },
    { LONG_INTERVAL, TOP },
    { LONG_ONCE, TOP },
    { LONG_SORT, TOP },
    { LONG_TOKEN, FORCE | UNLOCK },
    { LONG_ANY, FORCE },
    { LONG_MATCH, LS | FORCE },
    { LONG_COUNT, LS | TOP },
    { LONG_ALL, LS },
    { LONG_YES, FORCE },
    { LONG_VERBOSE, TAKES },
    { LONG_FOLLOW, LEADER },
    { LONG_ID, LATCH },
    { 'c', RUN },
    { LONG_AND, RUN },
};

static const char *const NAMES[] = {
    [CTL_RUN] = "run",     [CTL_TOP] = "top",     [CTL_WHY] = "why",
    [CTL_LS] = "ls",       [CTL_FORCE] = "force", [CTL_LEADER] = "leader",
    [CTL_LATCH] = "latch", [CTL_LOCK] = "lock",   [CTL_UNLOCK] = "unlock",
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

static bool keep_text(const char **to, const char *text)
{
    *to = text;
    return true;
}

static bool check_name(const char *option, const char *name)
{
    return (*name != '\0' && strlen(name) <= LATCHD_NAME_MAX) ||
           options_wrong(option, "a name has 1 to 512 bytes");
}

static bool read_one(struct options *o, int option)
{
    switch (option) {
    case 'w':
        return options_read_time("--wait", optarg, 0, &o->wait_ms);
    case LONG_NO_WAIT:
        o->wait_ms = 0;
        return true;
    case LONG_LEASE:
        return options_read_time("--lease", optarg, LEASE_MIN_MS, &o->lease_ms);
    case LONG_ID:
        return keep_text(&o->id, optarg);
    case LONG_FOLLOW:
        o->follow = true;
        return true;
    case 'c':
        o->shell[0] = (char *)"sh";
        o->shell[1] = (char *)"-c";
        o->shell[2] = optarg;
        return true;
    case LONG_AND:
        if (o->more_count == OPTIONS_MORE_MAX) {
            return options_wrong("--and", "more than 15 further names");
        }
        o->more[o->more_count++] = optarg;
        return check_name("--and", optarg);
    case 'k':
        return options_read_time("--kill-after", optarg, 0, &o->kill_after_ms);
    case 'E':
        return options_read_code("--conflict-exit-code", optarg, &o->conflict_code);
    case LONG_LOST_CODE:
        return options_read_code("--lost-exit-code", optarg, &o->lost_code);
    case LONG_VERBOSE:
        say_set_verbose();
        return true;
    case LONG_INTERVAL:
        return options_read_time("--interval", optarg, INTERVAL_MIN_MS,
                                 &o->interval_ms);
    case LONG_ONCE:
        o->once = true;
        return true;
    case LONG_SORT:
        return read_sort(o, optarg);
    case LONG_TOKEN:
        return keep_text(&o->token, optarg);
    case LONG_ANY:
        o->any = true;
        return true;
    case LONG_MATCH:
        return keep_text(&o->match, optarg);
    case LONG_COUNT:
        return read_count(o, optarg);
    case LONG_ALL:
        o->all = true;
        return true;
    case LONG_YES:
        o->yes = true;
        return true;
    default:
        return option >= LONG_TERM ? read_term(o, (size_t)(option - LONG_TERM))
                                   : options_read_target(o, option);
    }
}

static void add_terms(void)
{
    struct option *l = LONG;

    while (l->name != NULL) {
        l++;
    }
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (*TERMS[i].name != '\0') {
            *l++ = (struct option){
                .name = TERMS[i].name,
                .has_arg = TERMS[i].type == TERM_FLAG ? no_argument : required_argument,
                .val = LONG_TERM + i,
            };
        }
    }
}

static const char *name_of(int option)
{
    for (const struct option *l = LONG; l->name != NULL; l++) {
        if (l->val == option) {
            return l->name;
        }
    }
    return "";
}

/* Whether an option fits the subcommand, which may come after it. */
static bool option_fits(const struct options *o, int option)
{
    int commands = option >= LONG_TERM ? (int)TERMS[option - LONG_TERM].commands : ALL;

    for (size_t i = 0; i < sizeof(FOR) / sizeof(FOR[0]); i++) {
        commands = FOR[i].option == option ? FOR[i].commands : commands;
    }
    if ((commands & (1 << o->command)) == 0) {
        print_message("--%s is not an option of `latchctl %s`", name_of(option),
                      NAMES[o->command]);
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
    uint64_t seen; /* a bit for each option given, by its index in LONG */
};

/* Reads options up to the next word that is none. */
static enum options_outcome read_options(struct options *o, struct words *w, int argc,
                                         char **argv)
{
    int option;
    int place = -1;

    while (optind < argc && strcmp(argv[optind], "--") != 0 &&
           (option = getopt_long(argc, argv, "+h:p:s:u:a:w:nc:k:E:", LONG, &place)) !=
               -1) {
        if (option == '?') {
            return OPTIONS_WRONG;
        }
        if (option == LONG_HELP) {
            return print_help() ? OPTIONS_SAID : OPTIONS_WRONG;
        }
        if (option == LONG_VERSION) {
            return puts("latchctl " LATCHD_VERSION) < 0 ? OPTIONS_WRONG : OPTIONS_SAID;
        }
        option = option == 'n' ? LONG_NO_WAIT : option;
        for (int i = 0; LONG[i].name != NULL; i++) {
            w->seen |= LONG[i].val == option ? UINT64_C(1) << i : 0;
        }
        if (!read_one(o, option)) {
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
        return options_wrong("--yes", "it goes with --match");
    }
    if (o->match == NULL && whose != 1) {
        return options_wrong("force",
                             "one of --any, --token and --owner says whose hold it is");
    }
    return true;
}

static bool check_options(struct options *o, const struct words *w)
{
    bool named = o->command != CTL_TOP && o->command != CTL_LS &&
                 (o->command != CTL_FORCE || o->match == NULL);

    for (int i = 0; LONG[i].name != NULL; i++) {
        if ((w->seen & UINT64_C(1) << i) != 0 && !option_fits(o, LONG[i].val)) {
            return false;
        }
    }
    if (named && o->name == NULL) {
        return options_wrong(NAMES[o->command], "which lock? The NAME is missing");
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
        return options_wrong(*o->words, "one word too many");
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
    add_terms();
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
        return options_wrong(ret->name, "one word too many") ? OPTIONS_GO
                                                             : OPTIONS_WRONG;
    }
    return check_options(ret, &w) && options_check_target(ret) ? OPTIONS_GO
                                                               : OPTIONS_WRONG;
}

void options_fini(struct options *o)
{
    target_fini(&o->target);
}
