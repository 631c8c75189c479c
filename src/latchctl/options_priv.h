/* options_priv: what the files of options share. */
#ifndef LATCHD_LATCHCTL_OPTIONS_PRIV_H
#define LATCHD_LATCHCTL_OPTIONS_PRIV_H

#include "latchctl/options.h"

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

/* Prints an error about an option; returns false. */
bool options_wrong(const char *option, const char *why);

/* Reads a time: seconds, possibly with a fraction, or a number with a unit. */
bool options_read_time(const char *option, const char *text, uint64_t min,
                       uint64_t *ret);
bool options_read_code(const char *option, const char *text, int *ret);
bool options_check_number(const char *option, const char *text, uint64_t min,
                          uint64_t max);

/* Reads an option that says how a lock is taken, or else one that selects the latchd;
 * its value is in `optarg`. */
bool options_read_lock(struct options *o, int option);
/* Whether the options that say how a lock is taken fit together. */
bool options_check_lock(struct options *o);

/* Reads an option that selects the latchd to talk to; its value is in `optarg`. */
bool options_read_target(struct options *o, int option);
bool options_read_environment(struct options *o);
/* Whether the options that select the latchd fit together. */
bool options_check_target(const struct options *o);

#endif
