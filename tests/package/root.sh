# A Debian 12 with nothing on it, to try there what strangers do: read by other scripts with
# `.`, from the top of the sources. They set `root`, the directory that becomes it, and
# `scratch`, for logs. Needs root, debootstrap, git, and apt as this machine has it set up.
# shellcheck shell=bash

SUITE=bookworm

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
    # shellcheck disable=SC2154
    debootstrap --variant=minbase "$SUITE" "$root" "$mirror" >"$scratch/debootstrap.log"
    sources >"$root/etc/apt/sources.list"
    apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https \
        >"$root/etc/apt/apt.conf.d/90host"
    [ ! -d /etc/apt/auth.conf.d ] || cp -r /etc/apt/auth.conf.d "$root/etc/apt"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
}

# Runs a shell command in $root/root/latchd, with processes and mounts of its own.
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

# The nth code block below a heading of a page: the heading, n or 1, the page or README.
readme_line() {
    local page=README.md
    [ $# -lt 3 ] || page=$3
    awk -v heading="$1" -v nth="${2:-1}" '
        $0 == heading { found = 1; next }
        found && /^```/ { inside = !inside; count += inside; if (count > nth) exit; next }
        inside && count == nth { print }' "$page"
}
