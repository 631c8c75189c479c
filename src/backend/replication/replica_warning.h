/* replica_warning: logs that too few replicas acknowledge, and what to do; at most once
 * a minute.
 *
 * The caller owns the struct; a zeroed one has seen nothing. */
#ifndef LATCHD_BACKEND_REPLICATION_REPLICA_WARNING_H
#define LATCHD_BACKEND_REPLICATION_REPLICA_WARNING_H

#include <stdbool.h>
#include <stdint.h>

struct replica_warning {
    bool lasts;
    bool told; /* logged, and its end not yet */
    uint64_t told_ms;
};

/* Warns if fewer than `wanted` replicas are connected when the link comes up. */
void replica_warning_connected(const struct replica_warning *s, unsigned replicas,
                               unsigned wanted);
/* Warns if fewer than `wanted` replicas acknowledged within `wait_ms`. `replicas` < 0:
 * Redis answered `text` instead of a number. */
void replica_warning_waited(struct replica_warning *s, int64_t replicas,
                            unsigned wanted, uint64_t wait_ms, const char *text);

#endif
