# Sourced by the test of a tool, after expect_error=SCRIPT and tool=PROGRAM: makes a directory for its
# files, and checks its output; a failed check sets `failed` to 1.
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
failed=0
fail() {
  echo "FAILED: $*" >&2
  failed=1
}
reject() { # CODE TEXT ARG...: an error with this exit code and text
  local code=$1 text=$2
  shift 2
  "$expect_error" "$tool" "$code" "$text" -- "$@" || failed=1
}
expect() { # TEXT ARG...: success, with the text on standard output
  local text=$1
  shift
  "$tool" "$@" | grep -F -- "$text" >/dev/null && ((PIPESTATUS[0] == 0)) || fail "${tool##*/} $*: no '$text'"
}
