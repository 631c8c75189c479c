#!/bin/bash
# Builds the Debian package from the files that git knows, asks lintian, and runs the daemon
# and latchctl out of it. With --install, as root on a machine that may be changed, the
# package is also installed, used as its own user, and purged.
#
#   tests/package/package.sh [--install] [DIRECTORY-FOR-THE-PACKAGE]
#
# Needs dpkg-dev, debhelper, lintian, redis-server and what debian/control asks for.
# DEB_BUILD_OPTIONS=nocheck leaves out its tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

install=no
if [ "${1:-}" = --install ]; then
    install=yes
    shift
fi
keep=${1:-}
scratch=$(mktemp -d)
daemon=

clean() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" || true
    fi
    rm -rf "$scratch"
}
trap clean EXIT

# Runs this latchd, as this command says, until a lock was had through latchctl.
try() {
    local latchctl=$1 log=$scratch/log
    shift
    mkdir -p "$scratch/state"
    chmod 777 "$scratch" "$scratch/state"
    "$@" --port 0 --unixsocket "$scratch/state/socket" --unixsocketperm 777 \
        --state-dir "$scratch/state" 2>"$log" &
    daemon=$!
    for _ in $(seq 300); do
        if grep -q 'server: ready' "$log"; then
            break
        fi
        kill -0 "$daemon"
        sleep 0.1
    done
    # shellcheck disable=SC2016
    "$latchctl" --socket "$scratch/state/socket" run packaged -- \
        sh -c 'echo "had the lock with token $LATCHD_TOKEN"'
    kill "$daemon"
    wait "$daemon"
    daemon=
    rm -rf "$scratch/state"
}

# What the service would have left below a root, as systemd lays it out.
leave_state() {
    mkdir -p "$1/var/lib/private/latchd"
    touch "$1/var/lib/private/latchd/appendonly.aof"
    ln -s private/latchd "$1/var/lib/latchd"
}

has_state() {
    [ -e "$1/var/lib/private/latchd" ] || [ -L "$1/var/lib/latchd" ]
}

mkdir "$scratch/latchd"
git ls-files -z | tar --null -T - -c | tar -x -C "$scratch/latchd"
(cd "$scratch/latchd" && dpkg-buildpackage -b -us -uc)
deb=$(ls "$scratch"/latchd_*.deb)
lintian --allow-root --tag-display-limit 0 --display-info --fail-on error,warning \
    "$scratch"/latchd_*.changes
echo "lintian: no errors, no warnings"

dpkg-deb -x "$deb" "$scratch/root"
try "$scratch/root/usr/bin/latchctl" "$scratch/root/usr/sbin/latchd" \
    --config "$scratch/root/etc/latchd/latchd.conf"

# Removed, it leaves the locks where they are; purged, it does not.
dpkg-deb -e "$deb" "$scratch/control"
leave_state "$scratch/left"
DPKG_ROOT=$scratch/left "$scratch/control/postrm" remove 2>/dev/null
has_state "$scratch/left"
DPKG_ROOT=$scratch/left "$scratch/control/postrm" purge 2>/dev/null
if has_state "$scratch/left"; then
    echo "purging leaves the state directory" >&2
    exit 1
fi

if [ "$install" = yes ]; then
    dpkg -i "$deb"
    id latchd
    man -w latchd latchctl latchd.conf latchd-protocol latchd-promises latchd-http
    try latchctl setpriv --reuid latchd --regid latchd --clear-groups \
        latchd --config /etc/latchd/latchd.conf
    leave_state ""
    dpkg --purge latchd
    if has_state ""; then
        echo "purging leaves the state directory" >&2
        exit 1
    fi
fi
if [ -n "$keep" ]; then
    cp "$scratch"/latchd*.deb "$keep"
fi
echo "the package is all right: $(basename "$deb"), $(stat -c %s "$deb") bytes"
