#!/usr/bin/env bash
# Packs halfstep for machines without its packages or a compiler: cluster nodes, lent GPUs.
#   scripts/bundle.sh [OUT.tar.xz|OUT.tar.gz]     default: build/bundle/halfstep.tar.xz
# The archive holds the program, the CUDA plugins, the GPU tests, the configs, scripts/gpu_check.sh
# and every shared library they need besides glibc, libstdc++ and NVIDIA's. Unpack it anywhere:
#   tar xf halfstep.tar.xz && halfstep/bin/halfstep doctor
# Where the other machine has no xz, ask for a .tar.gz, which takes 50 MiB instead of 20.
# NVIDIA's libraries are looked for where the loader looks, and in the folders of HALFSTEP_CUDA_LIBS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

limit_mib=50
archive=${1:-build/bundle/halfstep.tar.xz}
root=build/bundle/halfstep

install_missing "${test_packages[@]}" xz-utils
configure_preset ci
programs=(halfstep test_cuda_device)
plugins=()
# The programs that this machine can build: the plugin needs a CUDA toolkit.
if has_target ci test_cuda_gpu; then programs+=(test_cuda_gpu); fi
for plugin in halfstep_cuda halfstep_cuda_emulated; do
  if has_target ci "$plugin"; then plugins+=("$plugin"); fi
done
build_preset ci "${programs[@]}" "${plugins[@]}"

rm -rf "$root"
mkdir -p "$root"/{bin,lib,libexec,scripts/gpu,scripts/bench/peers,tests}
for program in "${programs[@]}"; do
  strip -o "$root/libexec/$program" "build/ci/bin/$program"
  # The plugins are in the folder of the program, the libraries in lib/.
  cat >"$root/bin/$program" <<'WRAPPER'
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
LD_LIBRARY_PATH=$here/lib${HALFSTEP_CUDA_LIBS:+:$HALFSTEP_CUDA_LIBS}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
unset HALFSTEP_CUDA_LIBS
exec "$here/libexec/$(basename "$0")" "$@"
WRAPPER
  chmod +x "$root/bin/$program"
done
for plugin in "${plugins[@]}"; do
  strip --strip-unneeded -o "$root/libexec/lib$plugin.so" "build/ci/bin/lib$plugin.so"
done
cp -r configs "$root/"
cp scripts/gpu_check.sh "$root/scripts/"
cp scripts/gpu/*.py "$root/scripts/gpu/"
cp scripts/bench/peers/{network,torch_model}.py "$root/scripts/bench/peers/"

# glibc and libstdc++ come with the system (ours would ask for a newer glibc than all else does),
# NVIDIA's libraries with its driver and toolkit.
from_elsewhere='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s)\.so.*|lib(cuda|cudart|cublas|cublasLt|cudnn.*|nvrtc.*)\.so.*)$'
while read -r name path; do
  if ! [[ $name =~ $from_elsewhere ]]; then cp -L "$path" "$root/lib/$name"; fi
done < <(ldd "$root"/libexec/* | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u)

# newest PREFIX: the newest version of that library's symbols that anything in here uses.
newest() {
  objdump -T "$root"/libexec/* "$root"/lib/* 2>/dev/null |
    grep -oE "\b$1_[0-9]+(\.[0-9]+)+" | sort -Vu | tail -1
}
{
  "$root/bin/halfstep" version
  echo "needs Linux on $(uname -m), $(newest GLIBC) or newer, $(newest GLIBCXX) or newer"
  if has_target ci halfstep_cuda; then
    cuda=$(sed -nE 's/set\(CMAKE_CUDA_COMPILER_VERSION "([0-9]+\.[0-9]+).*/\1/p' \
      build/ci/CMakeFiles/*/CMakeCUDACompiler.cmake)
    echo "device cuda needs an NVIDIA driver for CUDA $cuda, and the libraries of CUDA ${cuda%%.*}" \
      "and cuDNN 9 where the loader finds them or in the folders of HALFSTEP_CUDA_LIBS"
  else
    echo "without the CUDA plugin: no toolkit was found where this was built"
  fi
} >"$root/README"

# Nothing but those may come from outside.
outside=$(LD_LIBRARY_PATH="$root/lib" ldd "$root"/libexec/* |
  awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
  [[ $name =~ $from_elsewhere || $path == *"/$root/lib/"* || $path == "$root/lib/"* ]] || echo "$name"
done)
[[ -z $outside ]] || die "not in the bundle: $outside"

mkdir -p "$(dirname "$archive")"
# The plugin and the GPU test hold the same kernels, 60 MB apart: a dictionary of 128 MiB finds them.
compress=(xz "--lzma2=preset=6,dict=128MiB")
if [[ $archive == *.gz ]]; then compress=(gzip -9); fi
tar -C "$(dirname "$root")" -c "$(basename "$root")" | "${compress[@]}" >"$archive"
bytes=$(stat -c %s "$archive")
[[ $archive == *.gz ]] || ((bytes < limit_mib << 20)) ||
  die "$archive has $((bytes >> 20)) MiB, $limit_mib are allowed"
cat "$root/README"
say "$archive: $((bytes >> 10)) KiB"
