# Two hosts on this machine: network namespaces that a cable joins. Takes root and ip.
#
#   source two_hosts.bash
#   make_two_hosts SCRATCH || echo "$two_hosts_problem"    # or make_two_hosts SCRATCH LATENCY_MS
#   limit_cable 1gbit
#   run_on_host_a mpirun --host "$address_a,$address_b" ...
#   remove_two_hosts
#
# Sets host_a, host_b and address_a, address_b. mpirun's way from host_a to host_b is an agent in the folder
# SCRATCH, which stays the caller's.

# Without a latency, the cable is as fast as memory.
join_hosts() { # [LATENCY_MS]
  if [[ -z ${1-} ]]; then
    ip link add cable netns "$host_a" type veth peer name cable netns "$host_b"
    return
  fi
  local answer
  exec {cable_answers}< <(exec python3 "${BASH_SOURCE[0]%/*}/cable.py" "$1" "$host_a" "$host_b")
  cable=$!
  read -r answer <&"$cable_answers" && [[ $answer == ready ]] || return
  ip link set "$host_a" netns "$host_a" name cable && ip link set "$host_b" netns "$host_b" name cable
}

make_two_hosts() { # SCRATCH [LATENCY_MS]
  host_a=zga-${1##*.} host_b=zgb-${1##*.}
  address_a=10.77.0.1 address_b=10.77.0.2
  local error=$1/two_hosts_error host
  two_hosts_problem="network namespaces cannot be made here"
  if ip netns add "$host_a" && ip netns add "$host_b"; then
    two_hosts_problem="there is no cable here"
    join_hosts "${2-}"
  fi 2>"$error" || {
    two_hosts_problem+=": $(cat "$error")"
    return 1
  }
  ip -n "$host_a" address add $address_a/24 dev cable
  ip -n "$host_b" address add $address_b/24 dev cable
  for host in "$host_a" "$host_b"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set cable up
    # Or the daemon on a lost host tries for a quarter of an hour to tell mpirun that its rank has gone. And the
    # machine's own way to avoid congestion may pace packets by timers, which takes much of a processor.
    ip netns exec "$host" sh -c 'cd /proc/sys/net/ipv4 && echo 4 >tcp_retries2 && echo reno >tcp_congestion_control' \
      2>"$error" || {
      two_hosts_problem="the network cannot be set up: $(cat "$error")"
      return 1
    }
  done

  # In the place of ssh; like that it fails without a cable.
  cat >"$1/agent" <<AGENT
#!/bin/sh
PATH=\$PATH:/usr/sbin:/sbin
shift
ip netns exec $host_b ip -br link show cable | grep -q LOWER_UP || exit 255
exec ip netns exec $host_b unshare --uts sh -c 'hostname $host_b; eval "\$*"' sh "\$@"
AGENT
  chmod +x "$1/agent"
  export OMPI_MCA_plm_rsh_agent=$1/agent
}

# In either direction.
limit_cable() { # RATE, as tc takes it
  local host
  for host in "$host_a" "$host_b"; do
    ip netns exec "$host" tc qdisc add dev cable root tbf rate "$1" burst 256k latency 50ms || return
  done
}

run_on_host_a() { # COMMAND...
  ip netns exec "$host_a" unshare --uts sh -c "hostname $host_a"'; exec "$@"' sh "$@"
}

remove_two_hosts() {
  [[ -z ${cable-} ]] || kill "$cable" 2>/dev/null
  ip netns del "$host_a" 2>/dev/null
  ip netns del "$host_b" 2>/dev/null
}
