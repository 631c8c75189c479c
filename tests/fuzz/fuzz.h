/* fuzz: what libFuzzer calls, and replay.c with the files of the corpus. */
#ifndef LATCHD_TESTS_FUZZ_H
#define LATCHD_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Of some targets; before its arguments are read. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
