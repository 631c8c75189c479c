/* `latchctl unlock`: ends what `latchctl lock` began. */
#include "latchctl/commands.h"
#include "latchctl/patient.h"
#include "latchctl/show.h"
#include "latchd/protocol.h"
#include "util/clock.h"

enum { TRY_MS = 10000 }; /* then the lock ends with its lease */

/* A release that was answered before is answered the same again, so that it can be sent
 * until there is an answer. */
int ctl_unlock(struct options *o)
{
    const char *const words[] = { "UNLOCK", o->name, "TOKEN", o->token, NULL };
    uint64_t end = clock_boot_ms() + TRY_MS;
    struct patient p = { .options = o };
    redisReply *reply = NULL;
    int code = CTL_EXIT_FAILED;

    while (!p.link.refused && clock_boot_ms() < end) {
        reply = patient_ask(&p, words, 0);
        if (reply != NULL && !patient_has_to_ask_again(&p, reply)) {
            break;
        }
        freeReplyObject(reply);
        reply = NULL;
    }
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
        code = 0;
    } else if (reply != NULL && reply_is_error(reply, LATCHD_ERR_NOTHELD)) {
        print_message("%s was not held any more: others may have had it", o->name);
        code = o->lost_code;
    } else if (reply != NULL) {
        print_message("%s", reply->type == REDIS_REPLY_ERROR ? reply->str
                                                             : "that is no latchd");
    }
    freeReplyObject(reply);
    link_close(&p.link);
    return code;
}
