#include "cmd/library/library_publish.h"

#include "cmd/handlers.h"
#include "cmd/library/library_call.h"

bool library_has_channels(enum pubsub_kind kind, struct span name)
{
    static const char *const OTHERS[] = {
        LATCHD_CHANNEL_GRANTED,
        LATCHD_CHANNEL_RELEASED,
        LATCHD_CHANNEL_UNCERTAIN,
        LATCHD_CHANNEL_LOST,
        LATCHD_CHANNEL_LEADER,
        LATCHD_RESERVED_OWNER_PREFIX,
        "redisson_",
        "__",
    };
    size_t len = 0;

    while (len < name.len &&
           (kind == PUBSUB_CHANNEL || strchr("*?[\\", name.ptr[len]) == NULL)) {
        len++;
    }
    name.len = len;
    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++) {
        if (span_starts(name, span_str(OTHERS[i]))) {
            return false;
        }
    }
    return kind == PUBSUB_CHANNEL || len > 0;
}

void library_check_publish(struct command_ctx *ctx, struct library_call *lib)
{
    const struct acl_user *user = ctx->client->user;
    struct span channel = lib->call.publish.channel;

    if (channel.ptr == NULL || permissions_may_channel(&user->terms, channel)) {
        return;
    }
    acl_check_denied(ctx, DENIAL_CHANNEL, channel, span_of(user->name, user->name_len));
    lib->may_not_publish = true;
}

void library_publish(struct cmd *c, const struct library_call *lib)
{
    const struct lock_publish *message = &lib->call.publish;

    if (message->channel.ptr == NULL || lib->may_not_publish) {
        return;
    }
    cmd_publish(c, message->channel, message->message);
}
