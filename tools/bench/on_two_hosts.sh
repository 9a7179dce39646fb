#!/usr/bin/env bash
# on_two_hosts.sh [--rate RATE] [--latency-ms MS] [--per-host N] COMMAND...: mpirun with N ranks (1) of the command
# on each of two hosts, which are network namespaces of this machine that a cable joins. RATE is what tc knows, such
# as 1gbit; without it the cable takes what memory does. The latency is that of one direction. Takes root.
#
#   on_two_hosts.sh --rate 1gbit --latency-ms 0.2 bazel-bin/models/recipe/recipe --zero 2 --steps 10
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin
source "$(dirname "${BASH_SOURCE[0]}")/two_hosts.bash"

usage() {
  sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
rate="" latency_ms="" per_host=1
while (($#)); do
  case $1 in
    --rate) rate=${2-} ;;
    --latency-ms) latency_ms=${2-} ;;
    --per-host) per_host=${2-} ;;
    --*) usage ;;
    *) break ;;
  esac
  shift 2 || usage
done
(($#)) && [[ $per_host =~ ^[1-9][0-9]*$ && $latency_ms =~ ^([0-9]+([.][0-9]+)?)?$ ]] || usage
((EUID == 0)) || {
  echo "on_two_hosts.sh: it makes network namespaces, which takes root" >&2
  exit 1
}
(($(nproc) >= 2)) || {
  echo "on_two_hosts.sh: two hosts need two processors, there is one" >&2
  exit 1
}

scratch=$(mktemp -d /tmp/zgt.XXXXXX) || exit 1
trap 'remove_two_hosts; rm -rf "$scratch"' EXIT
make_two_hosts "$scratch" "$latency_ms" || {
  echo "on_two_hosts.sh: $two_hosts_problem" >&2
  exit 1
}
[[ -z $rate ]] || limit_cable "$rate" || exit 1
# Each host has half of the processors. Open MPI would bind the ranks of either host to the same first ones.
half=$(($(nproc) / 2))
run_on_host_a mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl_tcp_if_include cable \
  --mca oob_tcp_if_include cable \
  -n "$per_host" --host "$address_a:$per_host" taskset --cpu-list "0-$((half - 1))" "$@" : \
  -n "$per_host" --host "$address_b:$per_host" taskset --cpu-list "$half-$((2 * half - 1))" "$@"
