#!/usr/bin/env bash
# bundle_test.sh BUNDLE PROGRAM: a bundled program runs from another directory, in an empty
# environment, with its own Open MPI; it is small, and leaves the driver, cuBLASLt, NCCL and the C
# library to the host.
set -uo pipefail
bundle_tool=$PWD/$1
program=$PWD/$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "bundle_test: $*" >&2
  failed=1
}

"$bundle_tool" -o "$work/bundle" "$program" >"$work/out" || fail "bundle.sh failed"
for library in libmpi libfmt libstdc++; do
  compgen -G "$work/bundle/lib/$library.so*" >/dev/null || fail "$library is missing"
done
for library in libc libcuda libcublas libcublasLt libnccl; do
  compgen -G "$work/bundle/lib/$library.so*" >/dev/null && fail "$library belongs to the host"
done
for library in $(ldd "$program" | awk '/libcudart/ { print $1 }'); do
  [[ -e $work/bundle/lib/$library ]] || fail "$library is missing"
done
ldd "$program" | grep -q "libnccl\|libcublas" && fail "it does not start on a host without NCCL or cuBLAS"
# The size counts without the program itself, which sanitizers make ten times as large.
name=$(basename "$program")
megabytes=$(du -sm --exclude="$name*" "$work/bundle" | cut -f 1)
((megabytes < 100)) || fail "it has $megabytes MB"

mkdir "$work/moved" "$work/elsewhere"
mv "$work/bundle" "$work/moved/here"
(cd "$work/elsewhere" && env -i PATH=/usr/bin:/bin HOME="$work" TMPDIR="$work" \
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 \
  "$work/moved/here/$name" --ranks 2 --zero 3 --steps 2 >"$work/out") || fail "it does not run: $(cat "$work/out")"
grep -q "all_gather" "$work/out" || fail "the ranks did not talk"
(cd "$work/elsewhere" && "$work/moved/here/tools/bench/gpu/compare_with_torch_gpu.py" --python "$work/none" >"$work/out") \
  || fail "the benchmark does not run"
grep -q "^SKIPPED" "$work/out" || fail "the benchmark: got $(cat "$work/out")"


# --gpu-check: the programs of gpu_check.py, which this bundle lacks, and finds in the next.
"$work/moved/here/gpu_check" --output "$work/checked" 2>"$work/err"
(($? == 2)) || fail "gpu_check without its programs: not an error"
grep -q "make the bundle with tools/bundle.sh --gpu-check" "$work/err" || fail "gpu_check: got $(cat "$work/err")"
mkdir -p "$work/bazel/bin"
cat >"$work/bazel/bin/bazel" <<'BAZEL'
#!/usr/bin/env bash
# "builds" a target: a copy of a program that needs nothing
bin=$(dirname "$(dirname "$0")")
case $1 in
  info) echo "$bin" ;;
  build)
    file=$bin/$(sed 's|^//||; s|:|/|' <<<"${@: -1}")
    mkdir -p "$(dirname "$file")"
    cp "$(type -P true)" "$file"
    ;;
esac
BAZEL
chmod +x "$work/bazel/bin/bazel"
cp "$(type -P true)" "$work/another"
PATH=$work/bazel/bin:$PATH "$bundle_tool" --gpu-check -o "$work/check" "$work/another" >"$work/out" || fail "--gpu-check failed"
for target in $("$work/check/gpu_check" --list-targets); do
  [[ -x $work/check/${target##*:} ]] || fail "--gpu-check: $target is missing"
done
[[ -x $work/check/another ]] || fail "--gpu-check: the other target is missing"
"$work/check/gpu_check" --only stages.0 --output "$work/checked" >"$work/out" 2>&1
grep -q "^FAILED *stages.0 .*: it ran no test" "$work/out" || fail "gpu_check does not run: $(cat "$work/out")"

"$bundle_tool" --gpu 2>"$work/err"
(($? == 2)) || fail "a wrong flag: not an error"
grep -q "got --gpu, expected -o, --max-mb, --config, --define, --gpu-check or a target" "$work/err" || fail "a wrong flag: got $(cat "$work/err")"
"$bundle_tool" -o "$work/none" "$work/no_such_program" 2>"$work/err" && fail "no program: not an error"
grep -q "there is no program" "$work/err" || fail "no program: got $(cat "$work/err")"
mkdir "$work/used"
touch "$work/used/something"
"$bundle_tool" -o "$work/used" "$program" 2>"$work/err" && fail "a used directory: not an error"
grep -q "is no bundle; expected a new or empty directory" "$work/err" || fail "a used directory: got $(cat "$work/err")"
[[ -e $work/used/something ]] || fail "it removed what is not its own"
exit $failed
