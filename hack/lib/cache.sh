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

# Builds programs of one module with one call, so that what they share is compiled once and they are linked at the same time. They are built elsewhere
# and renamed, so that an interrupted build leaves nothing that looks whole. Arguments: module, directory, then package and program by turns.
cache::build() {
  local module=$1 directory=$2 start=${SECONDS} building pulse name names='' paths=()
  shift 2
  local list=("$@") i
  for ((i = 0; i < ${#list[@]}; i += 2)); do
    paths+=("${list[i]}")
    names+=" ${list[i + 1]}"
  done
  cache::log "building${names} ..."
  mkdir -p "${directory}"
  building=$(mktemp -d -p "${directory}")
  # read on a silent pipe instead of sleep: nothing outlives this process when it is stopped.
  ( exec {silence}<> <(:)
    while ! read -r -t 15 -u "${silence}" _; do
      cache::log "building${names} ... $((SECONDS - start))s"
    done ) >&2 9>&- &
  pulse=$!
  # shellcheck disable=SC2064 # the values of now are those to stop and to remove
  trap "kill ${pulse} 2>/dev/null || true; rm -rf '${building}'" EXIT
  # Compilers that collect garbage less often need a tenth less CPU; the limit keeps them from using much more memory.
  GOGC=400 GOMEMLIMIT=2GiB CGO_ENABLED=0 GOOS='' GOARCH='' GOWORK=off GOFLAGS=-mod=readonly \
    go build -C "${module}" -trimpath -buildvcs=false -ldflags "$(ldflags "${module}")" \
    -o "${building}/" "${paths[@]}" >&2
  for ((i = 0; i < ${#list[@]}; i += 2)); do
    # go names a program after the import path of its package, without the major version; a path such as "." has no name.
    name=$(GOWORK=off GOFLAGS=-mod=readonly go list -C "${module}" "${list[i]}")
    [[ ! "${name##*/}" =~ ^v[0-9]+$ ]] || name=${name%/*}
    mv -f "${building}/${name##*/}" "${directory}/${list[i + 1]}"
  done
  rmdir "${building}"
  kill "${pulse}" 2>/dev/null || true
  wait "${pulse}" 2>/dev/null || true
  trap - EXIT
  cache::log "built${names} in $((SECONDS - start))s"
}

cache::complete() {
  local set_dir=$1 list=$2 module package program
  while read -r module package program; do
    [[ -z "${module}" || -x "${set_dir}/${program}" ]] || return 1
  done <<<"${list}"
}

# Fills modules, keys and set_dir of the caller, which declares them, from its list of programs.
cache::find() {
  local list=$1 key='' module package program
  while read -r module package program; do
    [[ -n "${module}" ]] || continue
    [[ -n "${keys[${module}]:-}" ]] || { keys[${module}]=$(cache::module_key "${module}"); modules+=("${module}"); }
    key+="${module} ${keys[${module}]} ${program}"$'\n'
  done <<<"${list}"
  set_dir="$(cache::root)/set-$(cache::hash <<<"${key}")"
}

# cache::download <list>: downloads what cache::ensure would download; nothing if it would build nothing.
cache::download() {
  local list=$1 set_dir='' module
  declare -A keys=()
  local modules=() paths
  cache::find "${list}"
  cache::complete "${set_dir}" "${list}" && return
  for module in "${modules[@]}"; do
    mapfile -t paths < <(awk -v module="${module}" '$1 == module {print $2}' <<<"${list}")
    GOWORK=off GOFLAGS=-mod=readonly go list -C "${module}" -deps "${paths[@]}" >/dev/null
  done
}

# cache::ensure <what> <list>: list has lines "module package program"; prints the directory with all programs.
cache::ensure() {
  local what=$1 list=$2 root set_dir='' module package program target
  declare -A keys=() missing=()
  local modules=()
  root=$(cache::root)
  cache::find "${list}"
  if ! cache::complete "${set_dir}" "${list}"; then
    mkdir -p "${set_dir}"
    exec 9>"${root}/lock"
    flock --nonblock 9 || { cache::log "waiting for another build of the ${what} in ${root}"; flock 9; }
    while read -r module package program; do
      [[ -n "${module}" ]] || continue
      target="${root}/store/${module//\//-}-${keys[${module}]}/${program}"
      [[ -x "${target}" ]] || missing[${module}]+="${package} ${program} "
      ln -sfn "../store/${module//\//-}-${keys[${module}]}/${program}" "${set_dir}/${program}"
    done <<<"${list}"
    for module in "${modules[@]}"; do
      # shellcheck disable=SC2086 # neither packages nor programs contain spaces
      [[ -z "${missing[${module}]:-}" ]] || cache::build "${module}" "${root}/store/${module//\//-}-${keys[${module}]}" ${missing[${module}]}
    done
    exec 9>&-
  fi
  echo "${set_dir}"
}
