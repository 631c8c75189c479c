#include "support/runner.h"

#include "support/scratch.h"

#include <stdlib.h>

int main(void)
{
    SRunner *runner = srunner_create(test_suite());
    int failed;

    scratch_open();
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    scratch_close(failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
