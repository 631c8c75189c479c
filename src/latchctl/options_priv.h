/* options_priv: what options.c and options_target.c share. */
#ifndef LATCHD_LATCHCTL_OPTIONS_PRIV_H
#define LATCHD_LATCHCTL_OPTIONS_PRIV_H

#include "latchctl/options.h"

/* Long options without a short one. */
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
};

/* False: a line on standard error said why. */
bool options_wrong(const char *option, const char *why);

/* One of the options that say which latchd is meant, with its value in `optarg`. */
bool options_read_target(struct options *o, int option);
bool options_read_environment(struct options *o);
/* Whether all of them go together. */
bool options_check_target(const struct options *o);

#endif
