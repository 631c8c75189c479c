/* replica_warning: what the log is told of replicas that are too few, and what to do;
 * not more often than once a minute.
 *
 * The caller owns the struct; a zeroed one has seen none. */
#ifndef LATCHD_BACKEND_REPLICATION_REPLICA_WARNING_H
#define LATCHD_BACKEND_REPLICATION_REPLICA_WARNING_H

#include <stdbool.h>
#include <stdint.h>

struct replica_warning {
    bool lasts;
    bool told; /* and not yet that it is over */
    uint64_t told_ms;
};

/* So many were connected when the link came up. */
void replica_warning_connected(const struct replica_warning *s, unsigned replicas,
                               unsigned wanted);
/* So many acknowledged in that time; less than 0: Redis did not say, but `text`. */
void replica_warning_waited(struct replica_warning *s, int64_t replicas,
                            unsigned wanted, uint64_t wait_ms, const char *text);

#endif
