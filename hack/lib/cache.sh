# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Cache of programs that are built from the nested modules in hack/. Sourced from hack/ with that as working directory;
# the caller defines `ldflags <module>`.
#
#   store/<module>-<key>/<program>   one build; never changed once it is there
#   set-<key>/<program>              links that put the programs of several modules side by side

cache::root() {
  echo "${JOBSET_APISERVER_CACHE:-${XDG_CACHE_HOME:-${HOME}/.cache}/jobset-apiserver}"
}

cache::log() { echo "$*" >&2; }

cache::hash() { sha256sum | cut -c1-16; }

# Everything that decides what `go build` produces for a module.
cache::module_key() {
  local module=$1
  { cat "${module}/go.mod" "${module}/go.sum"; find "${module}" -maxdepth 1 -name '*.go' -exec cat {} +; go version; ldflags "${module}"; } | cache::hash
}

# Builds one program under a temporary name and renames it, so that an interrupted build leaves nothing that looks whole.
cache::build() {
  local module=$1 package=$2 program=$3 target=$4 position=$5
  local start=${SECONDS} pulse
  cache::log "[${position}] building ${program} ..."
  # read on a silent pipe instead of sleep: nothing outlives this process when it is stopped.
  ( exec {silence}<> <(:)
    while ! read -r -t 15 -u "${silence}" _; do
      cache::log "[${position}] building ${program} ... $((SECONDS - start))s"
    done ) >&2 9>&- &
  pulse=$!
  # shellcheck disable=SC2064 # the process id of now is the one to stop
  trap "kill ${pulse} 2>/dev/null || true; rm -f '${target}.building'" EXIT
  mkdir -p "$(dirname "${target}")"
  CGO_ENABLED=0 GOOS='' GOARCH='' GOWORK=off GOFLAGS=-mod=readonly \
    go build -C "${module}" -trimpath -buildvcs=false -ldflags "$(ldflags "${module}")" \
    -o "${target}.building" "${package}" >&2
  mv -f "${target}.building" "${target}"
  kill "${pulse}" 2>/dev/null || true
  wait "${pulse}" 2>/dev/null || true
  trap - EXIT
  cache::log "[${position}] built ${program} in $((SECONDS - start))s"
}

cache::complete() {
  local set_dir=$1 list=$2 module package program
  while read -r module package program; do
    [[ -z "${module}" || -x "${set_dir}/${program}" ]] || return 1
  done <<<"${list}"
}

# cache::ensure <what> <list>: list has lines "module package program"; prints the directory with all programs.
cache::ensure() {
  local what=$1 list=$2 root set_dir key='' module package program total n=0
  declare -A keys=()
  root=$(cache::root)
  while read -r module package program; do
    [[ -n "${module}" ]] || continue
    [[ -n "${keys[${module}]:-}" ]] || keys[${module}]=$(cache::module_key "${module}")
    key+="${module} ${keys[${module}]} ${program}"$'\n'
    n=$((n + 1))
  done <<<"${list}"
  total=${n}
  set_dir="${root}/set-$(cache::hash <<<"${key}")"
  if ! cache::complete "${set_dir}" "${list}"; then
    mkdir -p "${set_dir}"
    exec 9>"${root}/lock"
    flock --nonblock 9 || { cache::log "waiting for another build of the ${what} in ${root}"; flock 9; }
    n=0
    while read -r module package program; do
      [[ -n "${module}" ]] || continue
      n=$((n + 1))
      local target="${root}/store/${module}-${keys[${module}]}/${program}"
      [[ -x "${target}" ]] || cache::build "${module}" "${package}" "${program}" "${target}" "${n}/${total}"
      ln -sfn "../store/${module}-${keys[${module}]}/${program}" "${set_dir}/${program}"
    done <<<"${list}"
    exec 9>&-
  fi
  echo "${set_dir}"
}
