/* The fifo: records in the order of their coming, over its ring's end and its growth.
 */
#include "support/runner.h"
#include "util/fifo.h"

#include <stdint.h>

START_TEST(records_come_out_in_the_order_they_went_in)
{
    struct fifo f = { 0 };
    uint64_t in = 0, out = 0, got;

    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 10; i++) {
            uint64_t *record = fifo_push(&f, sizeof(*record));

            ck_assert_uint_eq(*record, 0);
            *record = in++;
        }
        ck_assert_uint_eq(*(uint64_t *)fifo_at(&f, 9), out + 9);
        for (int i = 0; i < 7; i++) {
            ck_assert_uint_eq(*(uint64_t *)fifo_first(&f), out);
            ck_assert(fifo_pop(&f, &got));
            ck_assert_uint_eq(got, out++);
        }
    }
    while (fifo_pop(&f, &got)) {
        ck_assert_uint_eq(got, out++);
    }
    ck_assert_uint_eq(out, in);
    ck_assert_ptr_null(fifo_first(&f));
    fifo_fini(&f);
}
