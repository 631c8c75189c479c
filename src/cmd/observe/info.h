/* info: the sections of INFO. Fields that Redis has are named as in Redis; latchd's
 * own are described in latchd-protocol(7). */
#ifndef LATCHD_CMD_OBSERVE_INFO_H
#define LATCHD_CMD_OBSERVE_INFO_H

#include "util/buf.h"

struct cmd;
struct histogram;

typedef void info_fn(struct cmd *c, struct buf *out);

/* info_daemon.c */
info_fn info_server, info_clients, info_memory, info_persistence, info_stats, info_cpu,
    info_replication, info_cluster;
/* info_locks.c */
info_fn info_locks, info_watchdog, info_redis, info_keyspace, info_latency,
    info_commandstats, info_errorstats, info_latencystats;

#endif
