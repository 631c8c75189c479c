#include "backend/backend_config.h"
#include "support/runner.h"

static const struct {
    const char *text, *shown;
} ROWS[] = {
    { "embedded", "embedded" },
    { "", "" },
    { "unix:///run/a:b@c", "unix:///run/a:***@c" },
    { "unix://u:p@/r?db=1", "unix://u:***@/r?db=1" },
    { "unix://u:p@/a@b:1", "unix://u:***@/a@b:1" },
    { "unix://u:p@/a@/", "unix://u:***@/a@/" },
    { "unix://u:p@/a@/?db=1", "unix://u:***@/a@/?db=1" },
    { "redis://h:1/2", "redis://h:1/2" },
    { "redis://u:p@h:1/2", "redis://u:***@h:1/2" },
    { "redis://:p:q@r@h", "redis://:***@h" },
    { "redis://:p q r@h", "redis://:***@h" },
    { "cluster://u:p q@a,b", "cluster://u:***@a,b" },
    { "redis://:p@h redis://:q@h", "redis://:***@h" },
    { "rediss://u:p?x@h", "rediss://u:***@h" },
    { "sentinel://a,b:1/m", "sentinel://a,b:1/m" },
    { "sentinel://u:p@a,b:1/m/3", "sentinel://u:***@a,b:1/m/3" },
    { "sentinel://a:1/m?sentinel-password=x@y:z",
      "sentinel://a:1/m?sentinel-password=***" },
    { "sentinels://u:p@a/m?sentinel-user=v&sentinel-password=w",
      "sentinels://u:***@a/m?sentinel-user=v&sentinel-password=***" },
    { "sentinel://a/m?sentinel-password=w=&sentinel-user=v",
      "sentinel://a/m?sentinel-password=***&sentinel-user=v" },
    { "cluster://u:p?w@a,b?publish=sharded", "cluster://u:***@a,b?publish=sharded" },
    { "quorum redis://:a@b redis://:c@d", "quorum redis://:***@b redis://:***@d" },
};

START_TEST(passwords_are_not_shown, TEST_ROWS(ROWS))
{
    struct buf out = { 0 };

    backend_config_show(ROWS[_i].text, &out);
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), ROWS[_i].shown);
    buf_reset(&out);
}
