#!/bin/sh
# A guard for a file, with the fencing tokens of latchd.
#
#   file.sh claim FILE TOKEN           before reading
#   file.sh write FILE TOKEN <NEW      each write: FILE is replaced as a whole
#
# Exit status 3: another one holds the lock since, and nothing was changed. FILE.fence
# remembers the highest token that was seen, FILE.lock is locked for moments: it keeps checking
# and writing together, not the work. All who write FILE have to come this way, and the file
# system has to have flock(2) for all of them.
set -eu
verb=$1 file=$2 token=$3
new=$file.new.$$

# Whatever is no number would be neither before nor after another.
number() {
    case $1 in
    '' | *[!0-9]*)
        echo "file.sh: no token: $1" >&2
        exit 2
        ;;
    esac
}

number "$token"

case $verb in
claim) ;;
write)
    trap 'rm -f "$new"' EXIT
    cat >"$new" # all of it, before others are made to wait
    sync "$new"
    ;;
*)
    echo "file.sh: claim or write, not $verb" >&2
    exit 2
    ;;
esac

exec 9>>"$file.lock"
flock 9
last=0
if [ -e "$file.fence" ]; then
    last=$(cat "$file.fence")
fi
number "$last"
if [ "$token" -lt "$last" ]; then
    echo "file.sh: fenced: $last is after $token" >&2
    exit 3
fi
if [ "$token" -gt "$last" ]; then
    echo "$token" >"$file.fence.new"
    sync "$file.fence.new"
    mv "$file.fence.new" "$file.fence"
fi
if [ "$verb" = write ]; then
    mv "$new" "$file"
fi
