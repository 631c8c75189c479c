/* redis_link_priv: what redis_link.c (calls and their fate) and redis_link_setup.c (the
 * handshake, the audit) share. For nobody else. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_LINK_PRIV_H
#define LATCHD_BACKEND_REDIS_REDIS_LINK_PRIV_H

#include "backend/redis/redis_link.h"
#include "util/log.h"

enum call_what {
    CALL_OP,
    CALL_ABANDONED, /* an op that was reported as unknown before its answer came */
    CALL_AUTH,
    CALL_LOGIN, /* AUTH again, on a ready link */
    CALL_SELECT,
    CALL_SET_NAME,
    CALL_INFO_SERVER,
    CALL_INFO_REPLICATION,
    CALL_HISTORY, /* INFO replication again, on a ready link */
    CALL_PROBE,   /* the same, to see that it is the same master still */
    CALL_CLIENT_ID,
    CALL_KILL,
    CALL_LOAD,    /* item_count: which script */
    CALL_TIME,    /* ends a stage of the handshake, or is a heartbeat */
    CALL_AUDIT,   /* item_count: which question */
    CALL_FITNESS, /* may locks be kept here? */
    CALL_LOOK,    /* are writes taken now? */
    CALL_MARK,    /* a write, so that WAIT has an offset to start from */
    CALL_WAIT,
    CALL_ANNOUNCE,
    CALL_PUBLISH, /* for a lock library */
};

enum { REFUSAL_ROOM = 256 };

enum link_stage {
    LINK_DOWN,
    LINK_GREETING,  /* asks the server who it is */
    LINK_PREPARING, /* old link killed, scripts loaded */
    LINK_WAITING,   /* the old link could not be killed: until its ops are late */
    LINK_READY,
};

struct server_id {
    char run_id[48];
    const char *product; /* Redis, or Valkey */
    char version[32];
    char uptime_s[24];
    struct redis_history history;
    unsigned replicas; /* connected to it */
    /* it refuses writes if too few replicas are connected, .. */
    bool counts_replicas;
    uint64_t good_replicas; /* ..and has this many */
};

struct redis_link {
    struct redis_conn *conn;
    const struct backend_url *url;
    const struct redis_link_events *events;
    const struct store_listener *listener; /* NULL: of a second link */
    void *ctx;
    uint64_t timeout_ms;
    enum link_stage stage;
    bool closed;              /* no event comes any more */
    bool is_replicated;       /* see redis_link.h */
    enum publish_way wanted;  /* redis_link_setup's */
    enum publish_way publish; /* of this server */
    struct call_fifo open;    /* on this link */
    struct call_fifo orphans; /* ops of links before */
    struct redis_clock clock;
    struct server_id server; /* of this link, as far as known */
    struct server_id before; /* of the last one that was ready */
    uint64_t client_id;      /* of this link; 0: not known */
    uint64_t client_before;  /* of the last one that was ready, until it is killed */
    bool kill_failed;
    unsigned loading; /* SCRIPT LOADs open */
    bool clock_asked; /* a heartbeat is open */
    bool fitness_asked, look_asked;
    unsigned
        look_tag; /* of a cluster: the tag whose slot is this node's, as far as known */
    bool look_refused; /* the user has no right to that key: nothing is looked at */
    bool in_doubt;     /* something was refused: the next look is by the script */
    char refusal[REFUSAL_ROOM]; /* why the server takes no grants; empty: it does */
    bool refusal_told;          /* the log has it */
    struct log_recent told;     /* lately */
    bool is_second;
    bool clock_due;        /* the next WAIT is to have a heartbeat before it */
    bool announce_refused; /* an announcement was refused */
    bool publish_refused;  /* the last PUBLISH for a lock library was */
    bool batch_refused;    /* one call for several ops was refused */
    bool has_written;      /* something was written on this link */
    uint64_t wait_us;      /* how long the WAIT that is open may take; 0: none is */
    uint64_t ready_count;
    uint64_t alive_us;  /* the server was the one of `before` then, at the least */
    uint64_t probed_us; /* it was last asked whether it is the same master */
    bool is_probed;     /* that question is open */
    bool probe_refused; /* INFO is not allowed */
    bool replicas_counted;
    bool was_replica; /* a server at this address was one, since the link was ready */
    char audited[48]; /* run id of the server that was */
    bool has_aof;     /* by its audit */
    uint64_t min_replicas; /* by its audit; 0: not known, or none */
    struct histogram *round_trips;
};

struct redis_call *link_push(struct redis_link *l, enum call_what what);

/* Handshake. The functions return false if they dropped the link. */
void link_greet(struct redis_link *l);
bool link_on_own_reply(struct redis_link *l, const struct redis_call *call,
                       const redisReply *reply);
void link_load_scripts(struct redis_link *l);
void link_ask_clock(struct redis_link *l);
/* Asks whether the server is the same master still, unless that was asked lately. */
void link_probe(struct redis_link *l);
enum link_change link_change_of(const struct redis_link *l);
/* Asks whether the server takes grants, by a write that changes nothing, or by the
 * script if there is a doubt. In a cluster it tries tags until the key is this node's,
 * as other keys are refused for another reason. */
void link_look(struct redis_link *l);
/* The last step of the handshake. */
void link_become_ready(struct redis_link *l);

#endif
