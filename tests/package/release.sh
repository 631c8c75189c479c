#!/bin/bash
# What a release is made of, made from this commit on a Debian 12 that has nothing but the
# packages that the README names:
#
#   - the tarball of `meson dist` builds there, and passes the tests that need no servers;
#   - a static build of it runs in a directory that has nothing else, and finds a host by name;
#   - the RPM builds from it, has what `meson install` installs, and works installed.
#
#   tests/package/release.sh [DIRECTORY-FOR-THE-TARBALL-AND-THE-RPM]
#
# Needs meson, and what root.sh needs. Takes ten minutes on two cores.
set -Eeuo pipefail
cd "$(dirname "$0")/../.."

keep=${1:-}
scratch=$(mktemp -d)
root=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'echo "line $LINENO failed" >&2; tail -n 40 "$scratch"/*.log >&2' ERR
# shellcheck source=tests/package/root.sh
. tests/package/root.sh

# One step there; its name is that of its log.
step() {
    local name=$1
    shift
    (inside "$*") >"$scratch/$name.log" 2>&1
    echo "$name: $SECONDS s so far"
}

dist() {
    local clone=$scratch/clone
    git -c advice.detachedHead=false clone -q --no-hardlinks . "$clone"
    meson setup "$clone/build" "$clone" -Dtests=disabled >"$scratch/dist.log"
    meson dist -C "$clone/build" --no-tests >>"$scratch/dist.log"
    tarball=$(ls "$clone"/build/meson-dist/latchd-*.tar.xz)
    version=$(basename "$tarball" .tar.xz)
    version=${version#latchd-}
}

dist
make_root
mkdir "$root/root/latchd" "$root/root/sources"
tar -xf "$tarball" --strip-components 1 -C "$root/root/latchd"
cp "$tarball" "$root/root/sources"
echo "latchd $version: $SECONDS s so far"

# The README's packages, without its builds and tests.
packages=$(readme_line '## Test it')
step packages "${packages%% && meson setup*}" '&& apt-get install -y --no-install-recommends rpm file xz-utils systemd'
step tests 'meson setup build -Dtests=enabled -Doptimization=0 &&
    meson test -C build --suite unit --suite sim --print-errorlogs'

# shellcheck disable=SC2016
step static 'set -e
    meson setup build-static -Dstatic=true --buildtype=release
    ninja -C build-static
    ldd build-static/src/latchd 2>&1 | grep -q "statically linked"
    mkdir -p /root/empty/etc
    strip -o /root/empty/latchd build-static/src/latchd
    cp build-static/src/latchctl/latchctl /root/empty
    cp /etc/hosts /root/empty/etc
    redis-server --port 7399 --save "" >/root/redis.log &
    chroot /root/empty /latchd --port 7398 --redis redis://localhost:7399 &
    chroot /root/empty /latchctl --host localhost --port 7398 lock static --lease 60 --wait 60 --json'

# Everything that `meson install` installs is in the package, and nothing else. RPM compresses
# manual pages. The tests have run.
# shellcheck disable=SC2016
step rpm 'set -e
    rpmbuild -bb --nodeps --without check --define "_sourcedir /root/sources" conf/rpm/latchd.spec
    meson setup build-rpm --prefix=/usr --sysconfdir=/etc -Dtests=disabled
    DESTDIR=/root/installed ninja -C build-rpm install
    package=$(ls /root/rpmbuild/RPMS/*/latchd-[0-9]*.rpm)
    rpm -qp --qf "[%{FILEMODES:perms} %{FILENAMES}\n]" "$package" | sed -n "s/^-[^ ]* //p" |
        grep -v "^/usr/share/licenses" | sed "s/[.]gz\$//" | sort >/root/in-the-package
    (cd /root/installed && find . -type f | cut -c2- | sort) >/root/in-the-tree
    diff /root/in-the-tree /root/in-the-package
    rpm -i --nodeps "$package"
    getent passwd latchd
    latchd --version
    latchd --version | grep "+http"
    latchd --config /etc/latchd/latchd.conf --check-config'
echo "the RPM has $(wc -l <"$root/root/in-the-tree") files, a static latchd" \
    "$(($(stat -c %s "$root/root/empty/latchd") / 1024)) KB"
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    cp "$tarball" "$root"/root/rpmbuild/RPMS/*/latchd-[0-9]*.rpm "$keep"
fi
