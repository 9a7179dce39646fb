#!/usr/bin/env bash
# Installs what the build and the tests need, from Debian's packages. Run it as root or as a user
# with sudo; it prints nothing when everything is there already.
set -euo pipefail

packages=(
  # Build
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  g++ git python3 clang-format
  # Libraries
  libbenchmark-dev libcli11-dev libfmt-dev libgmock-dev libgtest-dev libhwy-dev libopenmpi-dev
  libpcre2-dev libspdlog-dev libssl-dev libutf8proc-dev nlohmann-json3-dev openmpi-bin zlib1g-dev
  # Tests
  iproute2
  # Data of demos and tests
  dataset-fashion-mnist python3.11-doc
)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: this system has no apt-get; Zerograph is built on Debian 12 (or a container of it)." >&2
  echo "On another system install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

# Prints those packages that are not fully installed.
missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      echo "$package"
  done
}

mapfile -t missing < <(missing_packages)
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: these packages are missing: ${missing[*]}" >&2
    echo "Install them as root, or run this script as root; there is no sudo here." >&2
    exit 1
  fi
  as_root=(sudo)
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" </dev/null
}

echo "setup.sh: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "setup.sh: apt-get could not install the packages above. Zerograph needs Debian 12; this is" \
    "$(. /etc/os-release && echo "${PRETTY_NAME:-an unknown system}")." >&2
  exit 1
fi
