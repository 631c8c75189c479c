/* peers: the other daemons that keep their locks in the same Redis.
 *
 * Each announces itself to the others, and answers those that ask. After Redis came
 * back as another one, it may have lost what clients of another daemon hold: so a
 * daemon that knows of others withholds the names that nobody here holds, until the
 * others can have reconnected and put back what is theirs. A daemon alone withholds
 * nothing. What an announcement says (`left` is for how many ms more its sender
 * withholds names, or has holds to put back):
 *
 *   hello <instance> <number> <left>   who else is there?
 *   here <instance> <number> <left>    the answer, or news that need none
 *   bye <instance> <number> <left>     it stops
 *
 * Who starts at a Redis that has just begun asks first, and grants nothing until those
 * who were there before can have answered. Private to engine/. */
#ifndef LATCHD_ENGINE_RECOVERY_PEERS_H
#define LATCHD_ENGINE_RECOVERY_PEERS_H

#include "engine/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEERS_MAX = 64,
    PEER_RETURN_MS = 3000, /* what it takes a daemon at most to reconnect, generously */
    PEER_ASK_MS = 400,     /* the same, once Redis can be reached and has just begun */
    PEER_REPEAT_MS = 1000, /* who puts back many holds says so this often */
    PEER_SLACK_MS = 100,   /* what is withheld is not made longer by less */
};

struct peer {
    char instance[OP_INSTANCE_LEN];
    uint64_t heard; /* when it announced something */
    uint64_t hello; /* the number of its last hello: in a cluster each comes often */
};

struct peers {
    struct peer list[PEERS_MAX];
    size_t count;
    bool more;               /* than could be remembered */
    uint64_t number;         /* of the last announcement */
    uint64_t lost_at;        /* the link to the Redis that was lost */
    uint64_t withheld_until; /* names, for others to come back */
    bool was_up;             /* Redis could be asked for locks */
    bool failed_over;        /* then failover-quarantine says what is withheld */
    bool young;              /* it had just begun then */
    bool asking;             /* so who else is there is asked first */
};

struct engine;

/* Others are known of. */
bool peers_known(const struct engine *eng);
/* Redis can be asked. True: not yet, as others are asked first; then peers_on_timer()
 * makes up for it. */
bool peers_ask_first(struct engine *eng);
void peers_forget_asking(struct engine *eng);
/* Redis is another one than before, as everybody here was told: names are withheld if
 * there are others. */
void peers_withhold(struct engine *eng);
/* Tells the others how it stands here. */
void peers_greet(struct engine *eng);
void peers_leave(struct engine *eng);
void peers_on_timer(struct engine *eng);

#endif
