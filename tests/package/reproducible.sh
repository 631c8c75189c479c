#!/bin/bash
# Whoever builds the package from the same files gets the same bits: builds it twice, in
# other directories, at other times, in another time zone, language and with another umask,
# and compares.
#
#   tests/package/reproducible.sh
set -euo pipefail
cd "$(dirname "$0")"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/one" "$scratch/two" "$scratch/elsewhere"
export DEB_BUILD_OPTIONS="nocheck ${DEB_BUILD_OPTIONS:-}" CCACHE_DISABLE=1

(export TZ=UTC LC_ALL=C && umask 022 && ./package.sh "$scratch/one")
(export TZ=Asia/Tokyo LC_ALL=C.UTF-8 TMPDIR="$scratch/elsewhere" && umask 027 &&
    ./package.sh "$scratch/two")

for deb in "$scratch"/one/*.deb; do
    cmp "$deb" "$scratch/two/$(basename "$deb")"
    sha256sum "$scratch"/*/"$(basename "$deb")"
done
echo "the packages are the same, bit by bit"
