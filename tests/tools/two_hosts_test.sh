#!/usr/bin/env bash
# two_hosts_test.sh LAUNCH RECIPE PLAN TWO_HOSTS: a job on two hosts, which are network namespaces joined by a
# cable (veth): the bits of one host, over messages; what goes through the cable is what was planned;
# and what happens when the cable is cut.
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

do_not_run() {
  echo "SKIPPED: two_hosts_test: $*"
  exit 0
}
((EUID == 0)) || do_not_run "it makes network namespaces, which takes root"
command -v ip >/dev/null || do_not_run "there is no ip; install the package iproute2"

launch=$(realpath "$1") recipe=$(realpath "$2") plan=$(realpath "$3")
source "$4"
scratch=$(mktemp -d /tmp/zgt.XXXXXX) || exit 1
processes() { # of the jobs: their command lines name the directory
  local directory
  for directory in /proc/[0-9]*; do
    [[ ${directory#/proc/} == $$ || ${directory#/proc/} == $BASHPID ]] ||
      ! grep -qsF -- "$scratch" "$directory/cmdline" || echo "${directory#/proc/}"
  done
}
clean_up() {
  local pid
  for pid in $(processes); do kill -KILL "$pid" 2>/dev/null; done
  remove_two_hosts
  rm -rf "$scratch"
}
trap clean_up EXIT

make_two_hosts "$scratch" || do_not_run "$two_hosts_problem"

out=$scratch/out
err=$scratch/err
failed=0
fail() {
  echo "FAILED: $*" >&2
  tail -n 40 "$err" >&2
  tail -n 5 "$out" >&2
  failed=1
}
flags=(--layers 4 --batch 4)

on_two_hosts() { # LAUNCH_FLAG... -- RECIPE_FLAG...
  local launch_flags=()
  while [[ $1 != -- ]]; do
    launch_flags+=("$1")
    shift
  done
  shift
  run_on_host_a timeout -k 5 60 "$launch" --ranks $((2 * ${per_host:-1})) --hosts "$address_a:${per_host:-1},$address_b:${per_host:-1}" \
    "${launch_flags[@]}" -- \
    "$recipe" "${flags[@]}" --width "${width:-60}" --zero "${zero:-2}" "$@" \
    >"$out" 2>"$err"
}
cable_bytes() { ip netns exec "$host_a" cat /sys/class/net/cable/statistics/tx_bytes; }

# The bits are those of one host, and the data really goes through the cable.
"$recipe" --ranks 2 "${flags[@]}" --width 60 --zero 2 --steps 600 --report "$scratch/one_host.json" >"$out" 2>"$err" || fail "one host: $?"
before=$(cable_bytes)
on_two_hosts -- --steps 600 --report "$scratch/two_hosts.json" || fail "two hosts: $?"
[[ $(wc -l <"$err") == 1 ]] || fail "standard error has more than the line of the start"
grep -q '^info: 2 ranks, 1 per host, .*; transport: messages (the ranks are on several hosts)$' "$err" ||
  fail "the start does not tell the hosts"
python3 - "$scratch" $(($(cable_bytes) - before)) <<'PYTHON' || fail "other bits, or not by messages"
import json
import pathlib
import sys

one, two = (json.loads(pathlib.Path(sys.argv[1], f"{name}_host{s}.json").read_text()) for name, s in [("one", ""), ("two", "s")])
assert one["communication"]["transport"] == "shared memory", one["communication"]
assert two["communication"]["transport"] == "messages", two["communication"]
assert one["final"] == two["final"], (one["final"], two["final"])
assert [step["loss"] for step in one["steps"]] == [step["loss"] for step in two["steps"]]
sent = sum(kind["bytes"] for kind in two["communication"]["measured"].values() if isinstance(kind, dict))
through_cable = int(sys.argv[2])
assert through_cable > sent * len(two["steps"]), (through_cable, sent)
PYTHON

# The prices of a run on these hosts decide about --overlap: as the plan says, with the same bits.
on_two_hosts -- --steps 20 --overlap unlimited --bucket-mb 0.02 --profile --report "$scratch/prices.json" ||
  fail "a profile of two hosts"
on_two_hosts -- --steps 600 --bucket-mb 0.02 --prices "$scratch/prices.json" --report "$scratch/priced.json" ||
  fail "two hosts with prices"
chosen=$(sed -n 's/^info: overlap: \(.*\) by .*prices.json, .* ms per step; off: .* ms$/\1/p' "$err")
[[ -n $chosen ]] || fail "the choice of overlap is not told"
"$recipe" --ranks 2 "${flags[@]}" --width 60 --zero 2 --bucket-mb 0.02 --prices "$scratch/prices.json" --plan \
  --json "$scratch/priced_plan.json" >"$out" 2>"$err" || fail "the plan with prices: $?"
grep -qF "  $chosen (chosen)" "$out" || fail "the run chose $chosen, but not the plan"
python3 - "$scratch" <<'PYTHON' || fail "with prices: other bits, or not as planned"
import json
import pathlib
import sys

one, priced, plan = (json.loads(pathlib.Path(sys.argv[1], f"{name}.json").read_text()) for name in ["one_host", "priced", "priced_plan"])
assert one["final"] == priced["final"], (one["final"], priced["final"])
assert priced["memory"]["predicted"]["peak"] == plan["memory"]["predicted"]["peak"]
assert priced["memory"]["measured"]["peak"] == plan["memory"]["predicted"]["peak"]
assert plan["time"]["priced_transfer_ms"] > 0 and plan["time"]["prices"]["same_transfers_ms"] > 0, plan["time"]
PYTHON
on_two_hosts --max-restarts 0 -- --steps 1 --overlap off --prices "$scratch/prices.json" && fail "--prices without --overlap auto"
grep -q "^.*--prices: is without effect; give --plan or --overlap auto as well" "$err" || fail "not the error of --prices"
per_host=2 on_two_hosts --max-restarts 0 -- --steps 1 --prices "$scratch/prices.json" && fail "prices of other ranks"
grep -q -- "--prices: .*prices.json has no times of transfers between 4 ranks with 2 on a host" "$err" ||
  fail "not the error of prices of other ranks"

# The report's sent bytes must have gone through the cable: rank 0 counts what it receives. The difference
# of a long and a short job leaves out the bytes of starting and ending a job. The headers of
# Ethernet, IP and TCP (14 + 20 + 32 bytes a packet) are not counted: how many packets TCP makes of the
# same bytes depends on how busy the machine is.
received_bytes() {
  local counters=/sys/class/net/cable/statistics
  ip netns exec "$host_a" sh -c "echo \$((\$(cat $counters/rx_bytes) - 66 * \$(cat $counters/rx_packets)))"
}
cable_agrees() { # STAGE
  local through_cable=() steps before
  for steps in 5 45; do
    before=$(received_bytes)
    width=500 zero=$1 on_two_hosts -- --steps $steps --report "$scratch/wire.json" || return
    through_cable+=($(($(received_bytes) - before)))
  done
  python3 - "$scratch/wire.json" $(((through_cable[1] - through_cable[0]) / 40)) <<'PYTHON'
import json
import sys

measured = json.load(open(sys.argv[1]))["communication"]["measured"]
reported = sum(kind["bytes"] for kind in measured.values() if isinstance(kind, dict))
through_cable = int(sys.argv[2])
print(f"per step: {reported} bytes in the report, {through_cable} through the cable: {through_cable / reported - 1:+.2%}")
sys.exit(not 0.97 * reported <= through_cable <= 1.03 * reported)
PYTHON
}
for stage in 0 1 2 3; do # twice, as TCP sends some segments again when the machine is busy
  cable_agrees $stage || cable_agrees $stage || fail "stage $stage: the cable says otherwise"
done

# Two ranks on each host. Hybrid sharding gathers parameters inside a host: what the plan says goes between
# the hosts does, and it is less than where all four ranks hold parts of one copy.
planned=()
cable_is_planned() { # MESH
  local through_cable=() steps before
  for steps in 5 45; do
    before=$(received_bytes)
    per_host=2 width=500 zero=3 on_two_hosts -- --mesh "$1" --steps $steps || return
    through_cable+=($(($(received_bytes) - before)))
  done
  "$plan" --model recipe "${flags[@]}" --width 500 --mesh "$1" --zero 3 --ranks-per-host 2 --comm messages \
    --json "$scratch/plan.json" >"$out" 2>"$err" || return
  planned+=("$(python3 - "$scratch/plan.json" $(((through_cable[1] - through_cable[0]) / 40)) "$1" <<'PYTHON'
import json
import sys

axes = json.load(open(sys.argv[1]))["communication"]["axes"]
planned = 2 * sum(along["host_bytes"] for along in axes)  # of two ranks
through_cable = int(sys.argv[2])
print(f"{sys.argv[3]}: per step {planned} bytes planned, {through_cable} through the cable: {through_cable / planned - 1:+.2%}", file=sys.stderr)
print(planned)
sys.exit(not planned <= through_cable <= 1.03 * planned)
PYTHON
)")
}
for mesh in data=4 replica=2,shard=2; do
  cable_is_planned $mesh || cable_is_planned $mesh || fail "$mesh: the cable does not carry what was planned"
done
((planned[-1] < planned[0])) || fail "hybrid sharding sends no less between hosts: ${planned[*]}"

# Shared memory does not reach there.
ZG_COMM=shared on_two_hosts --max-restarts 0 -- --steps 1 && fail "ZG_COMM=shared on two hosts"
grep -q "ZG_COMM=shared needs all 2 ranks on one host" "$err" || fail "not the error of ZG_COMM=shared"

cut_after_steps() { # waits for the job to have made some
  local i
  for ((i = 0; i < 300; ++i)); do
    if (($(grep -c '^step' "$out" 2>/dev/null) > 20)) && [[ ! -v saved || -e $saved/latest ]]; then
      ip -n "$host_b" link set cable down
      return
    fi
    sleep 0.1
  done
}
expect_nothing_left() {
  local i pid
  for ((i = 0; i < 100; ++i)); do
    [[ -n $(processes) ]] || return
    sleep 0.1
  done
  for pid in $(processes); do tr '\0' ' ' <"/proc/$pid/cmdline"; done >"$err"
  fail "$1: these processes are left"
}

# The cable is cut. The rank's deadline comes first: it names what it waits for. mpirun, which waits for
# the other host, then has 10 s.
: >"$out"
cut_after_steps &
on_two_hosts --max-restarts 0 -- --steps 100000000 --timeout 2 --report "$scratch/cut.json" &
job=$!
wait %1
start=$SECONDS
wait $job && fail "exit code 0 without a cable"
((SECONDS - start <= 15)) || fail "the job ended only $((SECONDS - start)) s after the cut"
grep -Eq "^rank 0: deadline exceeded: step [0-9]+[,:] .*(reduce_scatter|all_gather|all_reduce|exchange_word) '.*: no sign of rank 1 within 2 s" "$err" ||
  fail "no error that names the collective and the rank"
expect_nothing_left "cut"

# A host is lost for good: the job goes on with the ranks that are left.
ip -n "$host_b" link set cable up
: >"$out"
saved=$scratch/saved
cut_after_steps &
on_two_hosts --min-ranks 1 -- --steps 600 --save "$saved" --save-every 20 --report "$scratch/one_left.json"
code=$?
((code == 0)) || fail "the job without its second host ended with $code"
grep -q "the connection to host $address_b was lost" "$err" || fail "the lost host is not named"
grep -q "with 1 instead of 2 ranks" "$err" || fail "not restarted with fewer ranks"
python3 - "$scratch" <<'PYTHON' || fail "other bits after a host was lost"
import json
import pathlib
import sys

one, left = (json.loads(pathlib.Path(sys.argv[1], f"{name}.json").read_text()) for name in ["one_host", "one_left"])
assert len(left["steps"]) < len(one["steps"]), "it began again"
assert one["final"] == left["final"], (one["final"], left["final"])
PYTHON
expect_nothing_left "lost host"
exit $failed
