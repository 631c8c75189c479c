/* runner: the one main() of all Check programs. A test program defines test_suite(). */
#ifndef LATCHD_TESTS_RUNNER_H
#define LATCHD_TESTS_RUNNER_H

#include <check.h>

Suite *test_suite(void);

#endif
