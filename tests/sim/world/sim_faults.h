/* sim_faults: what goes wrong around the daemons, and who else uses their names. */
#ifndef LATCHD_SIM_FAULTS_H
#define LATCHD_SIM_FAULTS_H

#include "sim/redis/sim_redis.h"

struct sim;
struct flight;

enum {
    FAULT_LINK = 1 << 0,  /* the command link breaks: before, after a script, between */
    FAULT_SUB = 1 << 1,   /* the pub/sub link breaks, messages are lost */
    FAULT_PAUSE = 1 << 2, /* Redis stands still */
    FAULT_RESTART = 1 << 3,   /* Redis is started again, and has kept everything */
    FAULT_LOSS = 1 << 4,      /* the same, and lost everything, or the last writes */
    FAULT_DEL = 1 << 5,       /* an operator's DEL, FLUSHALL */
    FAULT_CLOCK = 1 << 6,     /* Redis's clock jumps */
    FAULT_STALL = 1 << 7,     /* a daemon stands still */
    FAULT_DEATH = 1 << 8,     /* a daemon is killed, and started again */
    FAULT_FOREIGN = 1 << 9,   /* Redisson uses the names */
    FAULT_STRING = 1 << 10,   /* somebody keeps other data under the names */
    FAULT_SLOW = 1 << 11,     /* answers take long */
    FAULT_ERROR = 1 << 12,    /* Redis refuses, or a script comes too late */
    FAULT_REPLICAS = 1 << 13, /* min-replicas, and they do not always acknowledge */
    FAULT_FAILOVER = 1 << 14, /* a replica takes over, and lacks the last writes */
    FAULT_ALL = (1 << 15) - 1,
    FAULT_KINDS = 15,
};

/* One random fault of the schedule's profile. */
void faults_act(struct sim *s);
/* No more faults: everybody else leaves, everything works again. */
void faults_stop(struct sim *s);

/* The kinds that scenarios need, by themselves. */
void fault_restart(struct sim *s, uint64_t gone_ms);
/* A replica follows from now on, `behind` scripts late; then it takes over. */
void fault_replica_at(struct sim *s, uint64_t behind);
void fault_failover(struct sim *s, uint64_t gone_ms);
/* Just before that: the daemon's link stays open to the old master, which is a replica
 * from now on, and refuses what it is sent. The daemon notices when it looks. */
void fault_demote(struct sim *s, size_t daemon, uint64_t notice_ms);
void fault_pause(struct sim *s, uint64_t ms);
void fault_flush(struct sim *s); /* an operator's FLUSHALL */
void fault_clock(struct sim *s, int64_t by_ms);
void fault_stall(struct sim *s, size_t daemon, uint64_t ms);
/* A failover that keeps all: that daemon goes on with the old master, alone. */
void fault_isolate(struct sim *s, size_t daemon);

/* Asked by the links. */
void faults_op(struct sim *s, struct flight *f);
bool faults_refused(struct sim *s, const struct flight *f);
/* A script has run. */
void faults_ran(struct sim *s);
bool faults_message_lost(struct sim *s);
/* Enough replicas acknowledge what that op did. */
bool faults_acked(struct sim *s, const struct flight *f);

#endif
