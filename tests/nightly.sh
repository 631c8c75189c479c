#!/bin/bash
# What takes too long for each change: fresh schedules of the simulator, torture of every
# topology and of other lock services, a soak, faults that last, all planted faults, faults
# made by rules, the lines of README.md on a bare Debian, the container images, the manifests
# of Kubernetes, the tarball with what is built from it, other versions of Redis and Valkey, and
# a real collector of traces. One summary at the end; exit code 1 if something failed.
#
#   tests/nightly.sh DIRECTORY-FOR-THE-LOGS [PART...]
#       (sim, torture, peers, soak, faults, mutants, rules, readme, container, kubernetes, release, servers, traces)
#
# MINUTES of torture for each topology (20), HOURS of the soak (2), SCHEDULES of the simulator (1000000), SEED (the
# time). Needs what .ci/run installs, for `rules` python3-clang-14, and for `readme`, `release`
# and `container` root, for the first two debootstrap and a free port 5625.
set -uo pipefail
logs=$(realpath -m "${1:?a directory for the logs}")
shift
cd "$(dirname "$0")/.." || exit 1
parts=("$@")
[ $# -gt 0 ] || parts=(sim torture peers soak faults mutants rules readme container kubernetes release servers traces)
MINUTES=${MINUTES:-20}
HOURS=${HOURS:-2}
SCHEDULES=${SCHEDULES:-1000000}
SEED=${SEED:-$(date +%s)}
build=$logs/build
mkdir -p "$logs"
summary=()
failed=0

# Runs one check: its name, its command. The log has its name.
step() {
    local name=$1 began=$SECONDS word=OK
    shift
    printf '=== %s: %s\n' "$name" "$*"
    "$@" >"$logs/$name.log" 2>&1 || word=FAILED
    [ "$word" = OK ] || failed=1
    summary+=("$(printf '%-18s %-6s %4d min  %s' "$name" "$word" \
        $(((SECONDS - began + 59) / 60)) "$(tail -n 1 "$logs/$name.log")")")
    printf '%s\n' "${summary[-1]}"
}

sim() {
    local jobs=() each i code=0 count
    count=$(nproc)
    each=$((SCHEDULES / count))
    for ((i = 0; i < count; i++)); do
        "$build/tests/sim/sim" --schedules "$each" --seed $((SEED * 1000 + i * each)) &
        jobs+=($!)
    done
    for i in "${jobs[@]}"; do
        wait "$i" || code=1
    done
    "$build/tests/sim/sim_quorum" --schedules $((SCHEDULES / 10)) --seed $((SEED * 1000)) || code=1
    return $code
}

build() {
    [ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=enabled || return
    ninja -C "$build"
}

step build build
if [ "$failed" -eq 0 ]; then
    for part in "${parts[@]}"; do
        case $part in
        sim) step sim sim ;;
        torture)
            for topology in single sentinel cluster quorum acked parted; do
                step "torture-$topology" python3 tests/torture/torture.py "$build/src/latchd" \
                    --topology "$topology" --minutes "$MINUTES" --seed "$SEED" \
                    --histories "$logs/histories"
            done ;;
        soak) step soak python3 tests/torture/soak.py "$build/src/latchd" --hours "$HOURS" \
            --seed "$SEED" --report "$logs/soak.html" --histories "$logs/histories" ;;
        faults) step faults python3 tests/failover/failover.py "$build/src/latchd" machine long ;;
        peers)
            step peers python3 tests/torture/peers.py "$build" --seed "$SEED" \
                --results "$logs/peers.json" --histories "$logs/histories" ;;
        mutants) step mutants python3 tests/torture/mutants.py --verbose ;;
        rules)
            step rules /usr/bin/python3 tests/torture/by_rule.py --seed "$SEED"
            step rules-scripts /usr/bin/python3 tests/torture/by_rule.py --scripts \
                --count 200 --seed "$SEED" ;;
        readme) step readme tests/package/readme.sh "$logs/readme" ;;
        traces) step traces env COLLECTOR=1 meson test -C "$build" --no-rebuild --suite clients clients-traces ;;
        servers) step servers python3 tests/package/servers.py "$build" ;;
        kubernetes) step kubernetes python3 tests/package/kubernetes.py ;;
        release) step release tests/package/release.sh "$logs/release" ;;
        container) step container python3 tests/package/container.py "$logs/container" ;;
        *) echo "there is no part $part" >&2; exit 2 ;;
        esac
    done
fi

printf '\n=== seed %s, logs in %s\n' "$SEED" "$logs"
printf '%s\n' "${summary[@]}"
exit $failed
