#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the directory that holds protoc: the one on PATH, else one unpacked from Debian packages into the cache, which needs no root
# and no lock of the package manager, else one installed by the package manager (as root). Any version that understands proto2 gives the
# same generated code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
# shellcheck source=lib/packages.sh
source lib/packages.sh

found() { command -v protoc >/dev/null 2>&1; }

fail() {
  cache::log "protoc was not found and could not be installed: put protoc 3.21 or newer on PATH" \
    "(Debian and Ubuntu: apt-get install protobuf-compiler; others: the releases of protocolbuffers/protobuf)"
  exit 1
}

install_as_root() {
  packages::install protobuf-compiler && found
}

# Names of the library packages that the program is linked with; they carry an ABI number that differs by release.
libraries() {
  local compiler
  compiler=$(apt-cache depends protobuf-compiler | awk '$1 == "Depends:" && $2 ~ /^libprotoc/ {print $2}')
  [[ -n "${compiler}" ]] || return 1
  echo "${compiler}"
  apt-cache depends "${compiler}" | awk '$1 == "Depends:" && $2 ~ /^libprotobuf/ {print $2}'
}

# Unpacks the packages beside each other and puts a wrapper next to them, so that nothing outside the cache changes.
unpack() {
  local target=$1 scratch package
  command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
  mkdir -p "$(dirname "${target}")"
  scratch=$(mktemp -d -p "$(dirname "${target}")")
  # shellcheck disable=SC2064 # the directory of now is the one to remove
  trap "rm -rf '${scratch}'" EXIT
  cache::log "unpacking protobuf-compiler into ${target} ..."
  # shellcheck disable=SC2046 # one argument for each package
  (cd "${scratch}" && timeout 300 apt-get download -o Acquire::Retries=3 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
    protobuf-compiler $(libraries)) </dev/null >"${scratch}/log" 2>&1 || { cache::log "$(grep '^E: ' "${scratch}/log" | tail -n 1)"; return 1; }
  for package in "${scratch}"/*.deb; do dpkg -x "${package}" "${scratch}/root" || return 1; done
  mkdir "${scratch}/bin"
  cat >"${scratch}/bin/protoc" <<'WRAPPER'
#!/bin/sh
root=$(cd "$(dirname "$0")/../root" && pwd)
libraries=$(find "$root/usr/lib" -name 'libproto*.so*' -exec dirname {} \; | sort -u | paste -sd:)
LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$root/usr/bin/protoc" "$@"
WRAPPER
  chmod +x "${scratch}/bin/protoc"
  "${scratch}/bin/protoc" --version >&2 || return 1
  rm -f "${scratch}"/*.deb
  mv -T "${scratch}" "${target}" 2>/dev/null || [[ -x "${target}/bin/protoc" ]]
}

cached="$(cache::root)/protoc"
if found; then
  dirname "$(command -v protoc)"
elif [[ -x "${cached}/bin/protoc" ]] || unpack "${cached}"; then
  echo "${cached}/bin"
elif install_as_root; then
  dirname "$(command -v protoc)"
else
  fail
fi
