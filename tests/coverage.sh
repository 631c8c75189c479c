#!/bin/sh
# What of src/ the tests run: lines in all, and branches of the lock engine, src/engine, which
# is simulated for a minute more than the suites do. Lists what is not covered, the largest
# gaps first, and fails below the limits. Needs gcovr 5.
#
#   tests/coverage.sh [BUILD-DIRECTORY [SUITE...]]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-coverage}
[ $# -eq 0 ] || shift
[ $# -ne 0 ] || set -- unit sim integration
LINES_MIN=90
BRANCHES_MIN=95

# Without optimization, so that each line is one; some warnings are wrong then.
[ -f "$build/build.ninja" ] ||
    meson setup "$build" -Db_coverage=true -Dbuildtype=debug -Dwerror=false
ninja -C "$build"
find "$build" -name '*.gcda' -delete
suites=
for suite; do
    suites="$suites --suite $suite"
done
# shellcheck disable=SC2086
meson test -C "$build" --no-rebuild $suites || echo "some tests failed: the figures are lower"
# What is rare takes more schedules than the suites have time for.
case $suites in
*sim*)
    "$build/tests/sim/sim" --schedules 60000 --seed 100000000
    "$build/tests/sim/sim_quorum" --schedules 15000 --seed 100000000
    ;;
esac

# Branches that only assert are not ours. Counts
# that several processes wrote at once may be nonsense, and are left out.
data=$build/coverage.json
# A file of ours: gcovr 5 removes what -o names before it writes, and for root that includes devices.
report=$build/coverage.txt
gcovr --root . --filter src/ --gcov-ignore-parse-errors --exclude-unreachable-branches \
    --exclude-branches-by-pattern '.*\b(assert|abort)\(.*' \
    --json -o "$data" "$build/src" 2>"$build/coverage.log"
echo "lines that no test runs:"
gcovr --root . -a "$data" --csv | awk -F, 'NR > 1 && $2 > $3 {
    printf "%5d of %4d  %s\n", $2 - $3, $2, $1 }' | sort -rn | head -30
echo "branches of src/engine that no test takes, in the line:"
gcovr --root . -a "$data" --filter src/engine/ --branches | sed -n '/^src/p' | grep -v ' 100%'
echo "src/engine:"
gcovr --root . -a "$data" --filter src/engine/ --print-summary -o "$report" \
    --fail-under-branch $BRANCHES_MIN
echo "all of src:"
gcovr --root . -a "$data" --print-summary -o "$report" --fail-under-line $LINES_MIN
echo "lines >= $LINES_MIN %, branches of src/engine >= $BRANCHES_MIN %"
