#include "latchctl/patient.h"
#include "latchctl/show.h"
#include "latchd/protocol.h"

#include <time.h>

enum {
    ANSWER_MAX_MS = 10000, /* beyond what latchd may wait */
    PAUSE_MS = 500,        /* before another try */
};

/* Says it once, until an answer comes. */
static void tell_trouble(struct patient *p, const char *what)
{
    if (!p->is_told) {
        print_message("%s; trying on", what);
    }
    p->is_told = true;
    (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
}

redisReply *patient_ask(struct patient *p, const char *const *words, uint64_t wait_ms)
{
    redisReply *reply;

    if (p->link.state != LINK_OPEN &&
        !link_connect(&p->link, &p->options->target, ANSWER_MAX_MS)) {
        tell_trouble(p, p->link.error);
        return NULL;
    }
    link_send(&p->link, words);
    reply = link_wait(&p->link, wait_ms + ANSWER_MAX_MS);
    if (reply == NULL) {
        link_close(&p->link);
        tell_trouble(p, p->link.error);
    }
    return reply;
}

bool patient_has_to_ask_again(struct patient *p, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR &&
        (reply_is_error(reply, LATCHD_ERR_BACKEND) ||
         reply_is_error(reply, LATCHD_ERR_NOREPLICAS) ||
         reply_is_error(reply, LATCHD_ERR_GOAWAY) ||
         reply_is_error(reply, LATCHD_ERR_LIMIT))) {
        tell_trouble(p, reply->str);
        return true;
    }
    p->is_told = false;
    return false;
}
