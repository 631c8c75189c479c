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

SUITE=bookworm
READY_S=900      # to install, build and start
TESTS_MIN=3900   # test cases of one build; fewer means that some were not built
logs=${1:-}
scratch=$(mktemp -d)
root=$scratch/root
started=

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

# The nth code block below a heading of a page: the heading, n or 1, the page or README.
readme_line() {
    local page=README.md
    [ $# -lt 3 ] || page=$3
    awk -v heading="$1" -v nth="${2:-1}" '
        $0 == heading { found = 1; next }
        found && /^```/ { inside = !inside; count += inside; if (count > nth) exit; next }
        inside && count == nth { print }' "$page"
}

# This machine's sources of Debian packages, as lines of sources.list.
sources() {
    # shellcheck disable=SC2016
    apt-get indextargets --format \
        'deb $(REPO_URI) $(RELEASE) $(COMPONENT)|$(CODENAME)' \
        'Created-By: Packages' | sed -n "s/|$SUITE.*//p" | sort -u
}

make_root() {
    local mirror
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        "Codename: $SUITE" 'Component: main' | head -n 1)
    debootstrap --variant=minbase "$SUITE" "$root" "$mirror" >"$scratch/debootstrap.log"
    sources >"$root/etc/apt/sources.list"
    apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https \
        >"$root/etc/apt/apt.conf.d/90host"
    [ ! -d /etc/apt/auth.conf.d ] || cp -r /etc/apt/auth.conf.d "$root/etc/apt"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
    git -c advice.detachedHead=false clone -q --no-hardlinks . "$root/root/latchd"
    git ls-files -z | tar --null -T - -c | tar -x -C "$root/root/latchd"
}

# Runs a shell command in the clone, with processes and mounts of its own.
inside() {
    exec unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" &&
        mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/run" || exit
        exec chroot "$1" env -i --default-signal HOME=/root LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            ${http_proxy:+http_proxy="$http_proxy"} \
            ${https_proxy:+https_proxy="$https_proxy"} \
            ${MESON_TESTTHREADS:+MESON_TESTTHREADS="$MESON_TESTTHREADS"} \
            sh -c "cd /root/latchd && $2"' bash "$root" "$1" </dev/null
}

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
