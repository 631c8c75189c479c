#include "support/runner.h"
#include "util/hash.h"

/* Each length around the ends of a block; the digests are sha1sum's. */
static const struct {
    size_t len;
    const char *hex;
} CASES[] = {
    { 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
    { 1, "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8" },
    { 55, "a617d006d1ca12671785098a19a87fe58443bde9" },
    { 56, "4ad5bb7ae3c4024768d364b77c52128ea3cffebe" },
    { 57, "e1b3b34da0f7b299090824d9aa81fff6711a79ad" },
    { 63, "fc8a5ab77259625085ead3ec96515b3b8d933fad" },
    { 64, "93249d4c2f8903ebf41ac358473148ae6ddd7042" },
    { 65, "cf2a63cc308225cf07b498d2309a01dd0df52f67" },
    { 119, "edd0f1133d0e4ca5f3e98bb7e0295f31d20d2cdb" },
    { 120, "23a58eee587aa1f50d19a969ab36a3fe3e88c393" },
    { 128, "3698f9beb7cdf5b1e1ce786672fb234143d4df89" },
    { 200, "0e43b981f4ae2c16bc6a798920eb9f1490c3d7fc" },
};

START_TEST(digests_are_those_of_sha1sum, TEST_ROWS(CASES))
{
    char text[200], hex[SHA1_HEX_LEN + 1];

    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)('a' + i % 26);
    }
    sha1_hex(span_of(text, CASES[_i].len), hex);
    ck_assert_str_eq(hex, CASES[_i].hex);
}
