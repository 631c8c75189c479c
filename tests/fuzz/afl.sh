#!/bin/sh
# afl.sh TARGET SECONDS [BUILD-DIRECTORY]: the fuzz targets built with AFL++ (Debian: afl++),
# and one of them (core, resp, ...) run over its corpus. What is found: BUILD-DIRECTORY/found.
set -eu
cd "$(dirname "$0")/../.."
target=$1
build=${3:-build-afl}
[ -f "$build/build.ninja" ] ||
    AFL_QUIET=1 CC=afl-clang-fast meson setup "$build" -Db_lundef=false -Db_sanitize=address,undefined
AFL_QUIET=1 ninja -C "$build" "tests/fuzz/fuzz_$target"
mkdir -p "$build/found"
exec env AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 \
    afl-fuzz -i "tests/fuzz/corpus/$target" -o "$build/found/$target" -V "$2" -m none -t 5000 \
    -- "$build/tests/fuzz/fuzz_$target"
