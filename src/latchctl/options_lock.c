#include "latchctl/options_priv.h"

#include "latchd/protocol.h"

#include <getopt.h>
#include <string.h>

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

bool options_read_lock(struct options *o, int option)
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

bool options_check_lock(struct options *o)
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
