#!/usr/bin/env bash
# on_two_hosts_test.sh ON_TWO_HOSTS: a rank runs on each host, and what one sends reaches the other no earlier than the
# cable's latency says.
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin
on_two_hosts=$1

do_not_run() {
  echo "SKIPPED: on_two_hosts_test: $*"
  exit 0
}
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

"$on_two_hosts" 2>/dev/null
(($? == 2)) || fail "without a command"
for latency in fast -1; do
  "$on_two_hosts" --latency-ms $latency true 2>/dev/null
  (($? == 2)) || fail "--latency-ms '$latency'"
done

((EUID == 0)) || do_not_run "it makes network namespaces, which takes root"
command -v ip >/dev/null || do_not_run "there is no ip; install the package iproute2"
(($(nproc) >= 2)) || do_not_run "two hosts need two processors"
[[ -c /dev/net/tun ]] || do_not_run "there is no /dev/net/tun"
chrt --fifo 1 true 2>/dev/null || do_not_run "processes cannot have real-time priority here"
ip netns add "zgt-$$" 2>/dev/null || do_not_run "network namespaces cannot be made here"
ip netns del "zgt-$$"

# Rank 1 says how long it takes to connect to rank 0: a message and its answer.
connect='
import os, socket, time
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    with socket.create_server(("10.77.0.1", 7000)) as server:
        server.accept()
else:
    while True:
        start = time.monotonic()
        try:
            socket.create_connection(("10.77.0.1", 7000))
        except ConnectionRefusedError:  # rank 0 is not there yet
            continue
        print("connected after", time.monotonic() - start, "s")
        break
'
for flags in "" "--latency-ms 30" "--latency-ms 30 --rate 1gbit"; do
  # shellcheck disable=SC2086
  out=$("$on_two_hosts" $flags python3 -c "$connect" 2>&1) || fail "'$flags': $out"
  seconds=$(sed -n 's/^connected after \(.*\) s$/\1/p' <<<"$out")
  [[ -n $seconds ]] || fail "'$flags': $out"
  least=0
  [[ $flags != *30* ]] || least=0.06
  awk -v seconds="$seconds" -v least=$least 'BEGIN { exit !(seconds >= least) }' ||
    fail "'$flags': connected after $seconds s"
done
