/* What may begin beside commands that are in flight, and how it waits then. */
#include "cmd/pipeline_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

enum { PIPELINE_ROOM = 4 }; /* of a new one */

/* The words of its options say no kind; what looks like one may be a value: so be it.
 */
static bool is_plain(const struct call *call)
{
    for (size_t i = 2; i < call->argc; i++) {
        if (call_arg_is(call, i, "FAIR") || call_arg_is(call, i, "READ") ||
            call_arg_is(call, i, "WRITE")) {
            return false;
        }
    }
    return true;
}

static bool is_unlocking(const struct pipeline *p, uint64_t hash)
{
    for (size_t i = p->first; i < p->count; i++) {
        const struct step *s = &p->steps[i];

        if (s->state == STEP_ASKED && !step_is_lock(s) && s->hash == hash) {
            return true;
        }
    }
    return false;
}

/* Whether it may begin beside what is in flight. */
static bool may_begin(const struct call *call, const struct pipeline *p, uint64_t hash)
{
    if (p->count == PIPELINE_MAX || is_unlocking(p, hash)) {
        return false;
    }
    if (call->command->run != cmd_lock) {
        return p->locks == 0;
    }
    /* An UNLOCK that is in flight may be about to make room. */
    return p->locks == p->gathered && (p->locks == 0 || is_plain(call)) &&
           locks_has_room(call->cmd->env.locks);
}

static struct pipeline *make_room(struct client *client)
{
    struct pipeline *p = client->pipeline;
    size_t room = p == NULL ? PIPELINE_ROOM : p->room;

    if (p != NULL && p->count < room) {
        return p;
    }
    room = p == NULL ? room : room * 2;
    client->pipeline = xrealloc(p, sizeof(*p) + room * sizeof(p->steps[0]));
    if (p == NULL) {
        *client->pipeline = (struct pipeline){ 0 };
    }
    client->pipeline->room = room;
    return client->pipeline;
}

static void add_step(struct call *call, uint64_t hash)
{
    struct pipeline *p = make_room(call->client);

    call->step = &p->steps[p->count++];
    *call->step = (struct step){ .state = STEP_BEGINS,
                                 .muted = client_muted(call->client),
                                 .command = call->command,
                                 .hash = hash };
    p->locks += call->command->run == cmd_lock;
}

static void put_off(struct call *call)
{
    call->client->kept = kept_new(call);
    conn_suspend(call->conn);
}

bool pipeline_begin(struct call *call)
{
    const struct command *command = command_find(call->argv[0]);
    uint64_t hash;

    call->command = command;
    if (command != NULL && call->argc > 1 &&
        (command->run == cmd_lock || command->run == cmd_unlock)) {
        hash = hash_bytes(call->argv[1].ptr, call->argv[1].len);
        if (may_begin(call, call->client->pipeline, hash)) {
            add_step(call, hash);
            if (!call->step->muted) {
                call->out = &call->step->reply;
            }
            return true;
        }
    }
    put_off(call);
    return false;
}

/* False: it is alone, and stays so. */
static bool joins(struct call *call)
{
    if (call->step == NULL && call->client->multi == NULL &&
        conn_has_more(call->conn)) {
        add_step(call, hash_bytes(call->argv[1].ptr, call->argv[1].len));
    }
    return call->step != NULL;
}

bool pipeline_waits_last(struct call *call, uint64_t number)
{
    struct step *s = call->step;

    if (s == NULL) {
        return false;
    }
    s->state = STEP_ASKED;
    s->number = number;
    s->began_us = call->started_us;
    return true;
}

bool pipeline_waits(struct call *call, uint64_t number)
{
    return joins(call) && pipeline_waits_last(call, number);
}

/* What points into the call's words is to point into those that are kept. */
static struct span in_kept(const struct call *call, const struct kept *k, struct span s)
{
    for (size_t i = 1; s.len != 0 && i < call->argc; i++) {
        if (call->argv[i].ptr == s.ptr && call->argv[i].len == s.len) {
            return k->argv[i];
        }
    }
    return SPAN_NONE;
}

bool pipeline_gathers(struct call *call, const struct lock_req *req)
{
    struct step *s;

    if (req->kind != KIND_PLAIN || !joins(call)) {
        return false;
    }
    s = call->step;
    s->kept = s->kept == NULL ? kept_new(call) : s->kept;
    s->req = *req;
    s->req.name = in_kept(call, s->kept, req->name);
    s->req.owner = in_kept(call, s->kept, req->owner);
    s->req.id = in_kept(call, s->kept, req->id);
    s->state = STEP_GATHERED;
    s->began_us = call->started_us;
    call->waits = true;
    call->client->pipeline->gathered++;
    return true;
}

struct kept *pipeline_puts_off(struct call *call)
{
    call->put_off = true;
    return call->step == NULL || call->step->kept == NULL ? NULL : call->step->kept;
}
