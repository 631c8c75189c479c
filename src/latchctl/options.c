#include "latchctl/options.h"

#include "latchctl/show.h"
#include "latchd-config.h"
#include "latchd/protocol.h"
#include "util/parse.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long options without a short form. */
enum {
    OPT_USER = 256,
    OPT_TLS,
    OPT_SNI,
    OPT_CACERT,
    OPT_CACERTDIR,
    OPT_CERT,
    OPT_KEY,
    OPT_INSECURE,
    OPT_HELP,
    OPT_VERSION,
    OPT_NO_WAIT,
    OPT_LEASE,
    OPT_FAIR,
    OPT_READ,
    OPT_WRITE,
    OPT_PERMITS,
    OPT_OF,
    OPT_OWNER,
    OPT_KILL_AFTER,
    OPT_LOST_CODE,
    OPT_VERBOSE,
    OPT_INTERVAL,
    OPT_ONCE,
    OPT_SORT,
    OPT_TOKEN,
    OPT_ANY,
    OPT_MATCH,
    OPT_COUNT,
    OPT_DATA,
    OPT_AT_LEAST,
    OPT_FOLLOW,
    OPT_QUEUE,
    OPT_PRIORITY,
    OPT_ID,
    OPT_ALL,
    OPT_YES,
    OPT_AND,
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
    case OPT_TLS:
        tls->by_option = true;
        break;
    case OPT_INSECURE:
        tls->insecure = true;
        break;
    case OPT_SNI:
        target_set(&tls->sni, optarg);
        break;
    case OPT_CACERT:
        target_set(&tls->ca_cert_file, optarg);
        break;
    case OPT_CACERTDIR:
        target_set(&tls->ca_cert_dir, optarg);
        break;
    case OPT_CERT:
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
    case OPT_USER:
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

static bool read_kind(struct options *o, const char *kind)
{
    if (o->kind != NULL && o->kind != kind) {
        return options_wrong(kind, "only one of --fair, --read, --write and --permits");
    }
    o->kind = kind;
    return true;
}

static bool read_permits(struct options *o, const char *text)
{
    o->permits = text;
    return options_check_number("--permits", text, 1, LATCHD_PERMITS_MAX) &&
           read_kind(o, "PERMITS");
}

static bool read_limit(struct options *o, const char *text)
{
    o->limit = text;
    return options_check_number("--of", text, 1, LATCHD_LIMIT_MAX);
}

static bool read_data(struct options *o, const char *text)
{
    o->data = text;
    return strlen(text) <= LATCHD_DATA_MAX ||
           options_wrong("--data", "that is more than 4096 bytes");
}

static bool read_queue(struct options *o, const char *text)
{
    o->queue = text;
    return options_check_number("--queue", text, 0, LATCHD_QUEUE_MAX);
}

static bool read_priority(struct options *o, const char *text)
{
    o->priority = text;
    return options_check_number("--priority", text, 0, LATCHD_PRIORITY_MAX);
}

/* Reads an option that says how a lock is taken, or else one that selects the latchd;
 * its value is in `optarg`. */
static bool options_read_lock(struct options *o, int option)
{
    switch (option) {
    case OPT_FAIR:
        return read_kind(o, "FAIR");
    case OPT_READ:
        return read_kind(o, "READ");
    case OPT_WRITE:
        return read_kind(o, "WRITE");
    case OPT_PERMITS:
        return read_permits(o, optarg);
    case OPT_OF:
        return read_limit(o, optarg);
    case OPT_OWNER:
        o->owner = optarg;
        return true;
    case OPT_DATA:
        return read_data(o, optarg);
    case OPT_QUEUE:
        return read_queue(o, optarg);
    case OPT_PRIORITY:
        return read_priority(o, optarg);
    case OPT_AT_LEAST:
        return options_read_time("--at-least", optarg, LATCHD_LEASE_MIN_MS,
                                 &o->atleast_ms);
    default:
        return options_read_target(o, option);
    }
}

/* With this the lock is tried once: who waits would run the job right after the time.
 */
static bool check_at_least(struct options *o)
{
    if (o->atleast_ms == 0) {
        return true;
    }
    if (o->wait_ms != CTL_FOREVER && o->wait_ms != 0) {
        return options_wrong("--at-least", "it does not go with --wait: it tries once");
    }
    if (o->queue != NULL || o->priority != NULL) {
        return options_wrong("--at-least", "it does not wait, and so has no place");
    }
    if (o->kind != NULL || o->owner != NULL) {
        return options_wrong("--at-least",
                             o->owner != NULL ? "it does not go with --owner"
                                              : "it needs a lock that one alone holds, "
                                                "and not --fair");
    }
    o->wait_ms = 0;
    return true;
}

/* Whether the options that say how a lock is taken fit together. */
static bool options_check_lock(struct options *o)
{
    if (o->limit != NULL && o->permits == NULL) {
        return options_wrong("--of", "how many of them? --permits is missing");
    }
    if (o->permits != NULL && o->owner != NULL) {
        return options_wrong("--permits", "it does not go with --owner");
    }
    if (o->data != NULL && o->kind != NULL && (*o->kind == 'R' || *o->kind == 'P')) {
        return options_wrong("--data", "it needs a lock that one alone holds");
    }
    if (o->more_count != 0 && (o->kind != NULL || o->data != NULL || o->queue != NULL ||
                               o->atleast_ms != 0)) {
        return options_wrong("--and", "several names are taken as plain locks, without "
                                      "--queue, --data and --at-least");
    }
    if (o->priority != NULL && o->kind != NULL && *o->kind == 'F') {
        return options_wrong("--priority", "a fair queue is in order of arrival");
    }
    return check_at_least(o);
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

static const struct option LONG[] = {
    { "host", required_argument, NULL, 'h' },
    { "port", required_argument, NULL, 'p' },
    { "socket", required_argument, NULL, 's' },
    { "uri", required_argument, NULL, 'u' },
    { "url", required_argument, NULL, 'u' },
    { "user", required_argument, NULL, OPT_USER },
    { "pass", required_argument, NULL, 'a' },
    { "tls", no_argument, NULL, OPT_TLS },
    { "sni", required_argument, NULL, OPT_SNI },
    { "cacert", required_argument, NULL, OPT_CACERT },
    { "cacertdir", required_argument, NULL, OPT_CACERTDIR },
    { "cert", required_argument, NULL, OPT_CERT },
    { "key", required_argument, NULL, OPT_KEY },
    { "insecure", no_argument, NULL, OPT_INSECURE },
    { "help", no_argument, NULL, OPT_HELP },
    { "version", no_argument, NULL, OPT_VERSION },
    { "wait", required_argument, NULL, 'w' },
    { "timeout", required_argument, NULL, 'w' },
    { "no-wait", no_argument, NULL, OPT_NO_WAIT },
    { "nonblock", no_argument, NULL, OPT_NO_WAIT },
    { "lease", required_argument, NULL, OPT_LEASE },
    { "fair", no_argument, NULL, OPT_FAIR },
    { "read", no_argument, NULL, OPT_READ },
    { "write", no_argument, NULL, OPT_WRITE },
    { "permits", required_argument, NULL, OPT_PERMITS },
    { "of", required_argument, NULL, OPT_OF },
    { "owner", required_argument, NULL, OPT_OWNER },
    { "data", required_argument, NULL, OPT_DATA },
    { "queue", required_argument, NULL, OPT_QUEUE },
    { "priority", required_argument, NULL, OPT_PRIORITY },
    { "at-least", required_argument, NULL, OPT_AT_LEAST },
    { "follow", no_argument, NULL, OPT_FOLLOW },
    { "id", required_argument, NULL, OPT_ID },
    { "command", required_argument, NULL, 'c' },
    { "and", required_argument, NULL, OPT_AND },
    { "kill-after", required_argument, NULL, 'k' },
    { "conflict-exit-code", required_argument, NULL, 'E' },
    { "lost-exit-code", required_argument, NULL, OPT_LOST_CODE },
    { "verbose", no_argument, NULL, OPT_VERBOSE },
    { "interval", required_argument, NULL, OPT_INTERVAL },
    { "once", no_argument, NULL, OPT_ONCE },
    { "sort", required_argument, NULL, OPT_SORT },
    { "token", required_argument, NULL, OPT_TOKEN },
    { "any", no_argument, NULL, OPT_ANY },
    { "match", required_argument, NULL, OPT_MATCH },
    { "count", required_argument, NULL, OPT_COUNT },
    { "all", no_argument, NULL, OPT_ALL },
    { "yes", no_argument, NULL, OPT_YES },
    { NULL, 0, NULL, 0 },
};

/* The subcommands that an option is for; other options are for all. */
static const struct {
    int option;
    int commands;
} FOR[] = {
    { 'w', TAKES | LATCH },
    { OPT_NO_WAIT, TAKES | LATCH },
    { OPT_LEASE, TAKES },
    { OPT_FAIR, TAKES },
    { OPT_READ, TAKES },
    { OPT_WRITE, TAKES },
    { 'k', RUN },
    { 'E', TAKES | LATCH },
    { OPT_LOST_CODE, RUN },
    { OPT_INTERVAL, TOP },
    { OPT_ONCE, TOP },
    { OPT_SORT, TOP },
    { OPT_TOKEN, FORCE | UNLOCK },
    { OPT_ANY, FORCE },
    { OPT_MATCH, LS | FORCE },
    { OPT_COUNT, LS | TOP },
    { OPT_ALL, LS },
    { OPT_YES, FORCE },
    { OPT_VERBOSE, TAKES },
    { OPT_OWNER, RUN | FORCE },
    { OPT_PERMITS, TAKES },
    { OPT_OF, TAKES },
    { OPT_DATA, TAKES },
    { OPT_FOLLOW, LEADER },
    { OPT_QUEUE, TAKES },
    { OPT_PRIORITY, TAKES },
    { OPT_ID, LATCH },
    { OPT_AT_LEAST, TAKES },
    { 'c', RUN },
    { OPT_AND, RUN },
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
    case OPT_NO_WAIT:
        o->wait_ms = 0;
        return true;
    case OPT_LEASE:
        return options_read_time("--lease", optarg, LEASE_MIN_MS, &o->lease_ms);
    case OPT_ID:
        return keep_text(&o->id, optarg);
    case OPT_FOLLOW:
        o->follow = true;
        return true;
    case 'c':
        o->shell[0] = (char *)"sh";
        o->shell[1] = (char *)"-c";
        o->shell[2] = optarg;
        return true;
    case OPT_AND:
        if (o->more_count == OPTIONS_MORE_MAX) {
            return options_wrong("--and", "more than 15 further names");
        }
        o->more[o->more_count++] = optarg;
        return check_name("--and", optarg);
    case 'k':
        return options_read_time("--kill-after", optarg, 0, &o->kill_after_ms);
    case 'E':
        return options_read_code("--conflict-exit-code", optarg, &o->conflict_code);
    case OPT_LOST_CODE:
        return options_read_code("--lost-exit-code", optarg, &o->lost_code);
    case OPT_VERBOSE:
        say_set_verbose();
        return true;
    case OPT_INTERVAL:
        return options_read_time("--interval", optarg, INTERVAL_MIN_MS,
                                 &o->interval_ms);
    case OPT_ONCE:
        o->once = true;
        return true;
    case OPT_SORT:
        return read_sort(o, optarg);
    case OPT_TOKEN:
        return keep_text(&o->token, optarg);
    case OPT_ANY:
        o->any = true;
        return true;
    case OPT_MATCH:
        return keep_text(&o->match, optarg);
    case OPT_COUNT:
        return read_count(o, optarg);
    case OPT_ALL:
        o->all = true;
        return true;
    case OPT_YES:
        o->yes = true;
        return true;
    default:
        return options_read_lock(o, option);
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
    for (size_t i = 0; i < sizeof(FOR) / sizeof(FOR[0]); i++) {
        if (FOR[i].option == option && (FOR[i].commands & (1 << o->command)) == 0) {
            print_message("--%s is not an option of `latchctl %s`", name_of(option),
                          NAMES[o->command]);
            return false;
        }
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
        if (option == OPT_HELP) {
            return fputs(CTL_HELP, stdout) < 0 ? OPTIONS_WRONG : OPTIONS_SAID;
        }
        if (option == OPT_VERSION) {
            return puts("latchctl " LATCHD_VERSION) < 0 ? OPTIONS_WRONG : OPTIONS_SAID;
        }
        option = option == 'n' ? OPT_NO_WAIT : option;
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
    int whose = (o->any ? 1 : 0) + (o->token != NULL) + (o->owner != NULL);

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
