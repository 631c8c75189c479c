#include "cmd/pipeline.h"

#include "cmd/pipeline_priv.h"

#include <stdlib.h>

size_t pipeline_bytes(const struct pipeline *p)
{
    size_t bytes = p == NULL ? 0 : sizeof(*p) + p->room * sizeof(p->steps[0]);

    for (size_t i = p == NULL ? 0 : p->first; p != NULL && i < p->count; i++) {
        const struct step *s = &p->steps[i];

        bytes += s->reply.room + (s->kept == NULL ? 0 : s->kept->bytes);
    }
    return bytes;
}

/* --- answers -----------------------------------------------------------------------
 */

static void answered(struct pipeline *p, struct step *s)
{
    s->state = STEP_ANSWERED;
    p->locks -= step_is_lock(s);
}

/* A token that had to wait for the replies before it: as at any grant, the clock is
 * looked at when it is written. */
static void write_grant(struct cmd *c, struct conn *conn, struct client *client,
                        const struct step *s)
{
    enum grant_state state = locks_grant_state(c->env.locks, client->id, s->grant);

    if (state == GRANT_FRESH) {
        client_granted(client, s->grant, conn_input_count(conn));
        buf_add_span(conn_out(conn), buf_span(&s->reply));
        return;
    }
    locks_undelivered(c->env.locks, client->id, s->grant);
    resp_error(conn_out(conn), LATCHD_ERR_BACKEND,
               state == GRANT_STALE
                   ? SPAN("the replies before took too long: the lock is given back")
                   : SPAN("the replies before took too long: the lock is lost"));
}

static void end_step(struct step *s)
{
    kept_free(s->kept);
    buf_reset(&s->reply);
}

/* Writes what has its turn. What comes next: a step that begins anew, or the requests
 * behind all this, or an answer of the engine. */
static void go_on(struct cmd *c, struct conn *conn, struct client *client)
{
    struct pipeline *p = client->pipeline;

    for (; p->first < p->count && p->steps[p->first].state == STEP_ANSWERED;
         p->first++) {
        struct step *s = &p->steps[p->first];

        if (s->grant != 0) {
            write_grant(c, conn, client, s);
        } else if (buf_len(&s->reply) > 0) {
            buf_add_span(conn_out(conn), buf_span(&s->reply));
        }
        end_step(s);
    }
    if (p->first == p->count) {
        client->pipeline = NULL;
        free(p);
        if (client->kept != NULL) {
            conn_again(conn);
        }
        conn_resume(conn);
    } else if (p->steps[p->first].state == STEP_UNREACHED) {
        conn_again(conn);
        conn_resume(conn);
    }
}

void pipeline_ran(struct call *call)
{
    struct pipeline *p = call->client->pipeline;
    struct step *s = call->step;

    if (s == NULL || call->waits) {
        return;
    }
    if (!call->put_off) {
        answered(p, s);
    } else if (s->kept == NULL) {
        p->locks -= step_is_lock(s);
        p->count--; /* there are others before it */
    }
}

static struct step *find(struct pipeline *p, uint64_t number)
{
    for (size_t i = p->first; i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state == STEP_ASKED && s->number == number) {
            return s;
        }
    }
    return NULL;
}

void pipeline_reply(struct cmd *c, struct conn *conn, const struct effect_reply *reply)
{
    struct client *client = conn_data(conn);
    struct pipeline *p = client->pipeline;
    struct step *s = find(p, reply->to.call);
    bool first = s == &p->steps[p->first];

    if (s == NULL) {
        return;
    }
    tracking_push(c, client); /* what was lost before must not look lost after it */
    if (reply->kind == REPLY_UNREACHED) {
        s->state = STEP_UNREACHED;
        go_on(c, conn, client);
        return;
    }
    stats_answered(c, s->command, s->began_us, reply_outcome(reply));
    if (!s->muted) {
        reply_write(first ? conn_out(conn) : &s->reply, client, reply);
        if (reply->kind == REPLY_TOKEN && first) {
            client_granted(client, reply->grant, conn_input_count(conn));
        } else if (reply->kind == REPLY_TOKEN) {
            s->grant = reply->grant;
        }
    }
    answered(p, s);
    go_on(c, conn, client);
}

/* --- runs --------------------------------------------------------------------------
 */

static void ask_run(struct cmd *c, struct client *client, struct pipeline *p)
{
    struct lock_req reqs[PIPELINE_MAX];
    struct step *steps[PIPELINE_MAX];
    size_t count = 0;
    size_t begun;

    for (size_t i = p->first; i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state == STEP_GATHERED) {
            s->number = ++c->next_call;
            s->req.from = (struct call_ref){ .conn = client->id, .call = s->number };
            reqs[count] = s->req;
            steps[count++] = s;
        }
    }
    if (count == 0) {
        return;
    }
    begun = locks_lock_run(c->env.locks, reqs, count);
    for (size_t i = 0; i < count; i++) {
        steps[i]->state = i < begun ? STEP_ASKED : STEP_UNREACHED;
    }
    p->gathered = 0;
}

void pipeline_settle(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct pipeline *p = client->pipeline;

    if (p != NULL) {
        ask_run(c, client, p);
        conn_suspend(conn);
    }
}

/* False: it has to wait even so. */
static bool begin_anew(struct cmd *c, struct conn *conn, struct step *s)
{
    struct client *client = conn_data(conn);
    struct call call = {
        .cmd = c,
        .conn = conn,
        .client = client,
        .command = s->command,
        .argv = s->kept->argv,
        .argc = s->kept->argc,
        .proto = client->proto,
        .out = &s->reply,
        .step = s,
        .counted = true,
    };

    dispatch(&call);
    pipeline_ran(&call);
    return !call.put_off;
}

void pipeline_again(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct pipeline *p = client->pipeline;

    for (size_t i = p->first; i < p->count && p->steps[i].state == STEP_UNREACHED &&
                              (i == p->first || locks_has_room(c->env.locks)) &&
                              begin_anew(c, conn, &p->steps[i]);
         i++) {
    }
    if (p->steps[p->first].state == STEP_ANSWERED) {
        go_on(c, conn, client);
        p = client->pipeline;
    }
    if (p != NULL && (client->kept != NULL || p->locks > p->gathered)) {
        conn_suspend(conn);
    }
}

void pipeline_abandon(struct cmd *c, struct client *client)
{
    struct pipeline *p = client->pipeline;

    if (p == NULL) {
        return;
    }
    for (size_t i = p->first; i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state != STEP_ANSWERED) {
            stats_answered(c, s->command, s->began_us, OUTCOME_GONE);
        } else if (s->grant != 0) {
            locks_undelivered(c->env.locks, client->id, s->grant);
        }
        end_step(s);
    }
    client->pipeline = NULL;
    free(p);
}
