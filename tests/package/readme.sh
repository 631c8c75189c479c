#!/bin/bash
# Runs the README's own lines, those of "Run it" and the first ones of "Use it", then that of
# "Test it", and those of "Install" in docs/operations.md, one after the other in one clone, in
# a Debian 12 that has nothing but what the lines install. A machine
# on which people work has more, and hides what the lines lack.
#
#   tests/package/readme.sh [DIRECTORY-FOR-THE-LOGS]
#
# Needs root, debootstrap, git, and apt as this machine has it set up; the port 5625 must be
# free. Takes as long as all tests do, and some minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

READY_S=900      # to install, build and start
TESTS_MIN=3900   # test cases of one build; fewer means that some were not built
logs=${1:-}
scratch=$(mktemp -d)
root=$scratch/root
started=
# shellcheck source=tests/package/root.sh
. tests/package/root.sh

clean() {
    # The namespaces that were made for it go with their first process.
    if [ -n "$started" ]; then
        kill -KILL -- "-$started" 2>/dev/null || true
        wait "$started" || true
    fi
    if [ -n "$logs" ]; then
        mkdir -p "$logs"
        cp "$scratch"/*.log "$root"/root/latchd/build/meson-logs/* "$logs" 2>/dev/null || true
    fi
    rm -rf --one-file-system "$scratch"
}
trap clean EXIT
trap 'echo "line $LINENO failed" >&2' ERR

# What its user pastes into another terminal while latchd runs in there.
use_it() {
    {
        echo 'cd /root/latchd'
        readme_line '## Run it' 2
        readme_line '## Use it' 1
        printf "python3 <<'END'\n%s\nEND\n" "$(readme_line '## Use it' 2)"
    } | chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/bin:/bin bash -eu \
        >"$scratch/use.log"
    [ "$(grep -c '^working with fencing token [0-9]*$' "$scratch/use.log")" = 2 ]
}

run_it() {
    local end=$((SECONDS + READY_S))
    set -m
    (inside "$(readme_line '## Run it')") >"$scratch/run.log" 2>&1 &
    started=$!
    set +m
    until grep -q 'server: ready' "$scratch/run.log"; do
        if ! kill -0 "$started" 2>/dev/null || [ "$SECONDS" -gt "$end" ]; then
            tail -n 40 "$scratch/run.log"
            return 1
        fi
        sleep 1
    done
    use_it
    kill -INT -- "-$started" # as Ctrl-C does: the shell around it ends by it, too
    wait "$started" || true
    started=
    grep -q 'server: stopped' "$scratch/run.log"
}

test_it() {
    local cases
    set -m
    (inside "$(readme_line '## Test it')") >"$scratch/test.log" 2>&1 &
    started=$!
    set +m
    if ! wait "$started"; then
        started=
        tail -n 80 "$scratch/test.log"
        return 1
    fi
    started=
    cases=$(grep -o '<testcase ' "$root/root/latchd/build/meson-logs/testlog.junit.xml" | wc -l)
    echo "$cases test cases"
    [ "$cases" -ge "$TESTS_MIN" ]
}

install_it() {
    # shellcheck disable=SC2016
    inside "export DESTDIR=/tmp/installed; $(readme_line '## Install' 1 docs/operations.md |
        head -n 1)" >"$scratch/install.log" 2>&1
}

make_root
git -c advice.detachedHead=false clone -q --no-hardlinks . "$root/root/latchd"
git ls-files -z | tar --null -T - -c | tar -x -C "$root/root/latchd"
echo "a Debian $SUITE with nothing on it: $SECONDS s so far"
run_it
echo "the line of \"Run it\" runs latchd: $SECONDS s so far"
test_it
echo "the line of \"Test it\" tests it in the same clone: $SECONDS s"
(install_it)
installed=$root/tmp/installed
[ -x "$installed/usr/sbin/latchd" ] && [ -e "$installed/etc/latchd/latchd.conf" ]
[ ! -e "$installed/usr/local" ]
echo "the line of \"Install\" installs it from the same clone: $SECONDS s"
