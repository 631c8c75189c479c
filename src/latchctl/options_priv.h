/* options_priv: what options.c and options_target.c share. */
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
    OPT_FOLLOW,
    OPT_QUEUE,
    OPT_PRIORITY,
};

/* Prints an error about an option; returns false. */
bool options_wrong(const char *option, const char *why);

/* Reads an option that selects the latchd to talk to; its value is in `optarg`. */
bool options_read_target(struct options *o, int option);
bool options_read_environment(struct options *o);
/* Whether the options that select the latchd fit together. */
bool options_check_target(const struct options *o);

#endif
