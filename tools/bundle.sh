#!/usr/bin/env bash
# bundle.sh [-o DIR|FILE.tar.xz] [--max-mb N] [--config NAME] [--define NAME=VALUE] [--gpu-check]
# [TARGET...]: programs that run on another machine without Bazel, packages or this source tree: for
# GPU hosts, which have a driver, cuBLASLt of the same major version, NCCL unless
# --gpu-collectives is host, and a glibc at least as new as the one here. The two libraries are
# searched for in CUDA_PATH (/usr/local/cuda) and LD_LIBRARY_PATH; those of PyTorch's wheels work.
#
#   tools/bundle.sh -o /tmp/zerograph --gpu-check
#   scp -r /tmp/zerograph host: && ssh host zerograph/gpu_check
#   scp -r /tmp/zerograph host: && ssh host zerograph/gpt --device cuda --ranks 2 --zero 2
#   tools/bundle.sh -o zerograph.tar.xz --define cuda_archs=90a --max-mb 25 --gpu-check
#
# --gpu-check stands for the programs that tools/gpu_check needs. That, as gpu_check, and the
# benchmarks against PyTorch and against estimates, in tools/bench, are in every bundle.
# --config and --define are passed to Bazel. A larger archive than --max-mb is an error and is removed.
#
# A target is a Bazel label of a cc_binary or cc_test, or the path of a program. DIR (bundle/ by
# default) then has a launcher script per target beside the programs with their data, the shared
# libraries and Open MPI. Programs are stripped. FILE.tar.xz has that directory as FILE; what programs
# have in common is in it once, as xz looks back 128 MiB. Unpacking it takes that much memory, and tar
# with xz, or python3 -m tarfile -e FILE.tar.xz.
set -euo pipefail

out=bundle
max_mb=
bazel_flags=(-c opt)
targets=()
while (($# > 0)); do
  case $1 in
    -o)
      out=${2:?"-o: got nothing, expected a directory"}
      shift
      ;;
    --max-mb)
      max_mb=${2-}
      if [[ ! $max_mb =~ ^[1-9][0-9]*$ ]]; then
        echo "bundle.sh: --max-mb: got '$max_mb', expected a whole number of at least 1" >&2
        exit 2
      fi
      shift
      ;;
    --config | --define)
      bazel_flags+=("$1=${2:?"$1: got nothing, expected what Bazel takes"}")
      shift
      ;;
    --gpu-check)
      listed=$("$(dirname "$0")/gpu_check/gpu_check.py" --list-targets)
      mapfile -t -O "${#targets[@]}" targets <<<"$listed"
      ;;
    -*)
      echo "bundle.sh: got $1, expected -o, --max-mb, --config, --define, --gpu-check or a target" >&2
      exit 2
      ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if ((${#targets[@]} == 0)); then
  sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi
archive=
if [[ $out == *.tar.xz ]]; then
  archive=$(cd "$(dirname "$out")" && pwd)/${out##*/}
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  out=$work/$(basename "$out" .tar.xz)
fi
if [[ -e $out && ! -e $out/.zerograph_bundle && -n $(ls -A "$out") ]]; then
  echo "bundle.sh: $out: it is there and is no bundle; expected a new or empty directory" >&2
  exit 2
fi
rm -rf "$out"
mkdir -p "$out/lib" "$out/bin" "$out/programs"
out=$(cd "$out" && pwd)
touch "$out/.zerograph_bundle"

# Left to the host: libraries tied to its C library or its driver, and large ones.
is_of_host() {
  case $1 in
    ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so*) ;;
    libutil.so* | libcuda.so* | libcublas*.so* | libnccl.so* | libcudnn*.so*) ;;
    libnv*.so*) ;;
    *) return 1 ;;
  esac
}

add_libraries_of() {
  local name path
  while read -r name path; do
    is_of_host "$name" && continue
    if [[ $path == not ]]; then
      echo "bundle.sh: $1: $name is not found on this machine" >&2
      exit 1
    fi
    [[ -e $out/lib/$name ]] || cp -L "$path" "$out/lib/$name"
  done < <(ldd "$1" | awk '$2 == "=>" { print $1, $3 }')
}

# The path of a target's file: models/gpt/gpt for //models/gpt and //models/gpt:gpt.
file_of_label() {
  local label=${1#//}
  [[ $label == *:* ]] || label=$label:${label##*/}
  echo "$(bazel info "${bazel_flags[@]}" bazel-bin 2>/dev/null)/${label/://}"
}

add_program() {
  local target=$1 program name inside
  program=$target
  if [[ $target == //* ]]; then
    bazel build "${bazel_flags[@]}" "$target" >&2
    program=$(file_of_label "$target")
  fi
  if [[ ! -f $program || ! -x $program ]]; then
    echo "bundle.sh: $target: there is no program $program" >&2
    exit 1
  fi
  name=$(basename "$program")
  if [[ -d $program.runfiles ]]; then
    cp -rL "$program.runfiles" "$out/programs/$name"
    inside=$(cd "$out/programs/$name" && find . -type f -name "$name" -perm -u+x -print -quit)
  else
    mkdir "$out/programs/$name"
    cp -L "$program" "$out/programs/$name/"
    inside=$name
  fi
  # Not a script's.
  if [[ $(head -c 4 "$program") == $'\x7fELF' ]]; then
    chmod u+w "$out/programs/$name/$inside"
    strip "$out/programs/$name/$inside"
  fi
  add_libraries_of "$program"
  cat >"$out/$name" <<LAUNCHER
#!/usr/bin/env bash
# Runs $name with the libraries and the Open MPI beside it.
here=\$(cd "\$(dirname "\$(readlink -f "\${BASH_SOURCE[0]}")")" && pwd)
export PATH=\$here/bin:\$PATH
export LD_LIBRARY_PATH=\$here/lib:\${CUDA_PATH:-/usr/local/cuda}/lib64\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export OPAL_PREFIX=\$here PMIX_INSTALL_PREFIX=\$here/pmix2 PMIX_MCA_pcompress_base_silence_warning=1
exec "\$here/programs/$name/${inside#./}" "\$@"
LAUNCHER
  chmod +x "$out/$name"
}

# Open MPI finds its plugins below OPAL_PREFIX as it was installed below /usr. Those of special
# networks are left out: they need drivers, and the host's libraries for them.
add_open_mpi() {
  local mpirun plugins plugin from
  mpirun=$(command -v mpirun) || {
    echo "bundle.sh: there is no mpirun; tools/setup.sh installs it" >&2
    exit 1
  }
  cp -L "$mpirun" "$out/bin/mpirun"
  cp -L "$(command -v orted)" "$out/bin/orted"
  add_libraries_of "$mpirun"
  plugins=$(ompi_info --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p' | head -n 1)
  mkdir -p "$out/${plugins#/usr/}"
  for plugin in "$plugins"/*.so; do
    case $(basename "$plugin") in
      *_ofi.so | *_ucx.so | *_psm*.so | *_openib.so | *_usnic.so | *_cm.so) continue ;;
      mca_atomic_* | mca_memheap_* | mca_scoll_* | mca_spml_* | mca_sshmem_*) continue ;;
    esac
    cp -L "$plugin" "$out/${plugins#/usr/}/"
    add_libraries_of "$plugin"
  done
  mkdir -p "$out/share"
  cp -rL /usr/share/openmpi "$out/share/"
  from=$(dirname "$plugins")/../../pmix2
  if [[ -d $from ]]; then
    mkdir -p "$out/pmix2/lib"
    cp -rL "$from/share" "$out/pmix2/"
    cp -rL "$from/lib/pmix" "$out/pmix2/lib/"
    for plugin in "$out"/pmix2/lib/pmix/*.so; do add_libraries_of "$plugin"; done
  fi
}

# Python scripts, without a program of ours.
add_scripts() {
  local from folder
  from=$(dirname "$0")
  for folder in gpu_check bench bench/gpu; do
    mkdir -p "$out/tools/$folder"
    cp -L "$from/$folder"/*.py "$out/tools/$folder/"
  done
  cat >"$out/gpu_check" <<'LAUNCHER'
#!/usr/bin/env bash
exec python3 "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/tools/gpu_check/gpu_check.py" "$@"
LAUNCHER
  chmod +x "$out/gpu_check"
}

for target in "${targets[@]}"; do add_program "$target"; done
add_scripts
add_open_mpi

megabytes() { awk '{ printf "%.1f MB", $1 / 1e6 }' <<<"$1"; }
size=$(du -sb "$out" | cut -f 1)
said="$out"
if [[ -n $archive ]]; then
  inside=$size
  tar -C "$work" --sort=name --owner=0 --group=0 -cf - "$(basename "$out")" |
    xz -T1 --x86 --lzma2=preset=9e,dict=128MiB >"$archive"
  size=$(stat -c %s "$archive")
  said="$archive, with $(megabytes "$inside")"
fi
echo "$(megabytes "$size") in $said"
if [[ -n $max_mb ]] && ((size > max_mb * 1000000)); then
  echo "bundle.sh: $(megabytes "$size"), expected at most $max_mb MB (--max-mb)" >&2
  echo "  hint: fewer targets, or one architecture: --define cuda_archs=90a" >&2
  [[ -n $archive ]] && rm "$archive"
  exit 1
fi
