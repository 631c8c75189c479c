/* Announcements of daemons in a Cluster: any node takes them, and all pass them on. */
#include "backend/cluster/cluster_priv.h"

void cluster_on_listening(void *member)
{
    struct member *m = member;
    struct cluster *c = m->cluster;
    bool any = false;

    for (size_t i = 0; i < c->member_count; i++) {
        any = any || c->members[i]->listens;
    }
    m->listens = true;
    if (!any) {
        c->listener.on_listening(c->listener.ctx);
    }
}

void cluster_on_announced(void *member, struct span text)
{
    struct cluster *c = ((struct member *)member)->cluster;

    c->listener.on_announced(c->listener.ctx, text);
}

void cluster_announce(void *cluster, struct span text)
{
    struct cluster *c = cluster;

    for (size_t i = 0; i < c->member_count; i++) {
        if (c->members[i]->up) {
            redis_link_announce(node_link(c->members[i]->node), text);
            return;
        }
    }
}
