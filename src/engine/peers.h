/* peers: the other daemons that keep their locks in the same Redis.
 *
 * Each daemon announces itself to the others, and answers a hello. A Redis that came
 * back as another one may have lost the holds of another daemon's clients: so a daemon
 * that knows of others withholds the names that none of its clients holds, until the
 * others can have reconnected and put their holds back. A daemon alone withholds
 * nothing. What an announcement says (`left`: for how many more ms its sender
 * withholds names, or has holds to put back):
 *
 *   hello <instance> <number> <left>   who else is there?
 *   here <instance> <number> <left>    the answer to a hello, or news that need none
 *   bye <instance> <number> <left>     the daemon stops
 *
 * A daemon that starts at a Redis that has itself just started asks first, and grants
 * nothing until daemons that were there before can have answered. Private to engine/.
 */
#ifndef LATCHD_ENGINE_PEERS_H
#define LATCHD_ENGINE_PEERS_H

#include "engine/objects.h"
#include "engine/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEERS_MAX = 64,
    /* how long a daemon takes at most to reconnect, generously */
    PEER_RETURN_MS = 3000,
    /* the same, once Redis can be reached and has just started */
    PEER_ASK_MS = 400,
    PEER_REPEAT_MS = 1000, /* how often a daemon that puts many holds back says so */
    PEER_SLACK_MS = 100,   /* a quarantine is not extended by less than this */
};

struct peer {
    char instance[OP_INSTANCE_LEN];
    uint64_t heard; /* when the daemon last announced itself */
    /* the number of its last hello; in a cluster each comes several times */
    uint64_t hello;
};

struct peers {
    struct peer list[PEERS_MAX];
    size_t count;
    bool more;        /* more daemons than could be remembered */
    uint64_t number;  /* of the last announcement */
    uint64_t lost_at; /* when the link to Redis was lost */
    /* names are withheld until this, for others to come back */
    uint64_t withheld_until;
    uint64_t absent_at; /* a daemon that is silent until then is forgotten */
    /* other daemons may have holds to put back until this: Redis lost its last writes
     */
    uint64_t back_by;
    /* the same of daemons that are late: by then what they held has ended */
    uint64_t back_late;
    uint64_t back_late_before; /* what it was before the last failover */
    bool was_up;               /* Redis has been reachable before */
    bool failed_over;          /* failover-quarantine says what is withheld */
    bool young;                /* Redis had just started then */
    bool asking;               /* others are being asked for first */
};

/* Whether other daemons are known of. */
static inline bool peers_known(const struct peers *peers)
{
    return peers->count != 0 || peers->more;
}

/* Redis has become reachable. True: locks must wait, as other daemons are asked first;
 * peers_on_timer() tells when that is over. */
bool peers_ask_first(struct engine *eng);
void peers_forget_asking(struct engine *eng);
/* Redis is another one than before, and everybody here has learnt that: withholds
 * names if there are other daemons. */
void peers_withhold(struct engine *eng);
/* Redis has lost its last writes, as each daemon hears by itself. */
void peers_lost_writes(struct engine *eng);
/* The last failover was none of the kind. */
void peers_lost_nothing(struct engine *eng);
/* Whether another daemon may have holds to put back that Redis does not show yet. */
bool peers_may_restore(const struct engine *eng);
/* The same of holds of that name, and of daemons that are late. */
bool peers_may_restore_late(const struct engine *eng, const struct lock *lock);
/* Announces this daemon's state to the others. */
void peers_greet(struct engine *eng);
/* Tells the others of the highest token, as they may not have seen where the clock of
 * Redis was. */
void peers_tell_token(struct engine *eng);
void peers_leave(struct engine *eng);
/* Another daemon has announced its state. True: it has just come, or come back. */
bool peers_on_announcement(struct engine *eng, struct span text);
/* True: the others have been asked, so that Redis is to be used from now on. */
bool peers_on_timer(struct engine *eng);

#endif
