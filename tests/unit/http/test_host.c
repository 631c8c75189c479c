#include "http/host.h"
#include "support/runner.h"

static const struct {
    const char *host;
    bool ok;
} HOSTS[] = {
    { "127.0.0.1", true },
    { "127.0.0.1:9625", true },
    { "192.168.1.7:9625", true },
    { "[::1]:9625", true },
    { "[::1]", true },
    { "localhost", true },
    { "LocalHost:9625", true },
    { "localhost.:9625", true },
    { "latchd.localhost", true },
    { "", false },
    { "evil.example", false },
    { "evil.example:9625", false },
    { "notlocalhost", false },
    { "localhost.evil.example", false },
    { "127.0.0.1.evil.example", false },
    { "[::1", false },
    { "[evil.example]", false },
    { "1.2.3", false },
};

START_TEST(only_digits_and_localhost_are_for_us, TEST_ROWS(HOSTS))
{
    ck_assert_int_eq(host_is_numeric_or_local(HOSTS[_i].host), HOSTS[_i].ok);
}

START_TEST(an_endless_name_is_not)
{
    char host[2000];

    memset(host, '1', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    ck_assert(!host_is_numeric_or_local(host));
}

START_TEST(addresses_of_this_machine_only)
{
    ck_assert(host_is_loopback("127.0.0.1"));
    ck_assert(host_is_loopback("127.8.0.1"));
    ck_assert(host_is_loopback("::1"));
    ck_assert(!host_is_loopback("0.0.0.0"));
    ck_assert(!host_is_loopback("::"));
    ck_assert(!host_is_loopback("10.0.0.1"));
    ck_assert(!host_is_loopback("localhost"));
}
