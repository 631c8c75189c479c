#include "cmd/acl/sight.h"

#include "acl/permissions.h"
#include "cmd/acl/users.h"
#include "cmd/cmd_priv.h"
#include "engine/value_hold.h"

enum sight sight_of(const struct cmd *c, const struct client *client, struct span name,
                    uint32_t of_user)
{
    bool is_own = of_user != 0 && of_user == client->user->id;

    if (!is_own && !permissions_may_name(&client->user->terms, name, PERM_READ)) {
        return SIGHT_NOTHING;
    }
    return client_overrides(c, client) ? SIGHT_ALL : SIGHT_HOLDER;
}

struct user_search {
    uint32_t id;
    const struct acl_user *found;
};

static void look_at_user(void *ctx, struct acl_user *user)
{
    struct user_search *s = ctx;

    s->found = user->id == s->id ? user : s->found;
}

bool sight_user_may_read(const struct cmd *c, uint32_t user, struct span name)
{
    struct user_search s = { .id = user };

    acl_each(c->users.acl, look_at_user, &s);
    return s.found != NULL && permissions_may_name(&s.found->terms, name, PERM_READ);
}

uint64_t sight_token(enum sight sight, struct span owner, uint64_t token)
{
    struct span origin, value;
    bool is_of_library = value_field_split(owner, &origin, &value);

    return sight == SIGHT_ALL || (sight == SIGHT_HOLDER && !is_of_library) ? token : 0;
}
