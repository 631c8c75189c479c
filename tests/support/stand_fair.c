#include "support/stand_fair.h"

#include <inttypes.h>

void fair_join(struct client *c, const char *words, long long place)
{
    client_send(c, "LOCK job FAIR%s%s", *words == '\0' ? "" : " ", words);
    await_queue("job", place);
}

int64_t fair_served(struct client *c, struct client *next)
{
    int64_t token = client_read_int(c);

    if (next != NULL) {
        expect_silence(next);
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    return token;
}

void fair_expect_no_queue(void)
{
    ck_assert_int_eq(peek_int("EXISTS " QUEUE " " DUE), 0);
}
