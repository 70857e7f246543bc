#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# A Kubernetes cluster without containers on this machine, with jobset-apiserver and jobset-controller in it.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: hack/cluster.sh up | down [--keep-logs] | status
       hack/cluster.sh stop|start apiserver|controller|etcd
       hack/cluster.sh kubectl ARGUMENTS...

  up      start what does not run; may be called again at any time
  down    stop everything and remove the data; logs are kept in _output/failed/ after a start that failed, or if told so
  status  list the processes; fails when one of them does not run
  stop    stop one component of ours and keep its data; start brings it back

Environment (values for the Kubernetes control plane are read when it is created):
  CLUSTER_DIR                  directory of the cluster                      (.cluster in the checkout)
  CLUSTER_NAME                 name in kubeconfig; kept for life             (made from the directory)
  CLUSTER_NODES                number of simulated nodes                     (20)
  CLUSTER_STORAGE              embedded, or etcd for one in its own process; kept for life  (embedded)
  CLUSTER_APISERVER_ARGS       further flags of jobset-apiserver
  CLUSTER_CONTROLLER_ARGS      further flags of jobset-controller
  CLUSTER_AUDIT_POLICY         audit policy file of jobset-apiserver, log in logs/apiserver-audit.log
  CLUSTER_KUBE_APISERVER_ARGS  further --flag=value words for kube-apiserver
  CLUSTER_KUBE_AUDIT_POLICY    audit policy file of kube-apiserver, log in logs/kube-apiserver-audit.log
  CLUSTER_BIN                  directory with our two programs; without it they are built into bin/
  CLUSTER_COMPONENTS           all, or none for the Kubernetes control plane alone  (all)
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
: "${CLUSTER_DIR:=${root}/.cluster}" "${CLUSTER_NODES:=20}" "${CLUSTER_COMPONENTS:=all}"
CLUSTER_DIR=$(realpath -m "${CLUSTER_DIR}")
programs=$(realpath -m "${CLUSTER_BIN:-${root}/bin}")
binaries=

# shellcheck source=lib/process.sh
source "${root}/hack/lib/process.sh"
# shellcheck source=lib/controlplane.sh
source "${root}/hack/lib/controlplane.sh"
# shellcheck source=lib/jobset.sh
source "${root}/hack/lib/jobset.sh"

# keep <variable> <default>: what a cluster was created with holds for its life. Its store in particular must not change
# under it: with an empty one, the garbage collector would delete all Jobs.
keep() {
  local variable=$1 file="${CLUSTER_DIR}/settings/$1" kept
  kept=$(cat "${file}" 2>/dev/null) || kept=
  [[ -n "${!variable:-}" ]] || printf -v "${variable}" '%s' "${kept:-$2}"
  [[ -z "${kept}" || "${kept}" == "${!variable}" ]] ||
    die "${variable}: \"${!variable}\" must be \"${kept}\", with which this cluster was created; use another CLUSTER_DIR"
}

load_settings() {
  keep CLUSTER_NAME "jobset-$(cksum <<<"${CLUSTER_DIR}" | cut -d' ' -f1)"
  keep CLUSTER_STORAGE embedded
}

save_settings() {
  mkdir -p "${CLUSTER_DIR}/settings"
  echo "${CLUSTER_NAME}" >"${CLUSTER_DIR}/settings/CLUSTER_NAME"
  echo "${CLUSTER_STORAGE}" >"${CLUSTER_DIR}/settings/CLUSTER_STORAGE"
}

check_settings() {
  [[ "${CLUSTER_NODES}" =~ ^[0-9]+$ ]] || die "CLUSTER_NODES: \"${CLUSTER_NODES}\" must be a number"
  [[ "${CLUSTER_STORAGE}" =~ ^(embedded|etcd)$ ]] || die "CLUSTER_STORAGE: \"${CLUSTER_STORAGE}\" must be embedded or etcd"
  [[ "${CLUSTER_COMPONENTS}" =~ ^(all|none)$ ]] || die "CLUSTER_COMPONENTS: \"${CLUSTER_COMPONENTS}\" must be all or none"
  [[ "${CLUSTER_DIR}" != / && "${CLUSTER_DIR}" != "${root}" && "${CLUSTER_DIR}" != "${HOME}" ]] ||
    die "CLUSTER_DIR: ${CLUSTER_DIR} must be a directory of its own, because down removes what is in it"
}

# A directory with files that are not a cluster's is left alone, whatever CLUSTER_DIR was set to by mistake.
check_directory() {
  [[ -f "${CLUSTER_DIR}/.is-cluster" || -z "$(find "${CLUSTER_DIR}" -mindepth 1 -maxdepth 1 ! -name .lock -print -quit)" ]] ||
    die "CLUSTER_DIR: ${CLUSTER_DIR} holds files of something else; name an empty directory"
}

# One command at a time works on a cluster directory.
lock() {
  mkdir -p "${CLUSTER_DIR}"
  check_directory
  exec 9>"${CLUSTER_DIR}/.lock"
  flock --wait 300 9 || die "another command has been working on ${CLUSTER_DIR} for five minutes"
}

find_binaries() { binaries=$("${root}/hack/ensure-binaries.sh" 9>&-); }

up() {
  local start=${SECONDS}
  find_binaries
  lock
  mkdir -p "${CLUSTER_DIR}"/{logs,pids,pki,ports}
  touch "${CLUSTER_DIR}/.is-cluster"
  begin_start
  save_settings
  if [[ "${CLUSTER_COMPONENTS}" == all && -z "${CLUSTER_BIN:-}" ]]; then
    with_progress "building jobset-apiserver and jobset-controller" \
      make --no-print-directory -s -C "${root}" build >&2 9>&- || die "our programs do not build"
  fi
  controlplane::up
  controlplane::nodes
  if [[ "${CLUSTER_COMPONENTS}" == all ]]; then
    jobset::rbac
    jobset::kubeconfig jobset-apiserver apiserver
    jobset::kubeconfig jobset-controller-manager controller
    jobset::up_apiserver
    jobset::up_controller
  fi
  end_start
  log "cluster ${CLUSTER_NAME} is up ($((SECONDS - start))s)"
  echo "kubeconfig: ${CLUSTER_DIR}/kubeconfig"
  echo "logs:       ${CLUSTER_DIR}/logs/"
}

# A start that did not get to its end has left this file, and down keeps the logs that say why.
begin_start() { touch "${CLUSTER_DIR}/unfinished"; }
end_start() { rm -f "${CLUSTER_DIR}/unfinished"; }

# Copies the end of every log to where down removes nothing. The last 20 copies stay.
keep_logs() {
  local kept="${root}/_output/failed" file to
  [[ -d "${CLUSTER_DIR}/logs" ]] || return 0
  to="${kept}/$(date -u +%Y%m%dT%H%M%SZ)-$(basename "${CLUSTER_DIR}")"
  mkdir -p "${to}"
  for file in "${CLUSTER_DIR}"/logs/*; do
    [[ ! -f "${file}" ]] || tail -c 20000000 "${file}" >"${to}/$(basename "${file}")"
  done
  find "${kept}" -mindepth 1 -maxdepth 1 -type d | sort | head -n -20 | xargs -r rm -r
  log "logs are kept in ${to}"
}

down() {
  [[ -d "${CLUSTER_DIR}" ]] || return 0
  [[ $# -eq 0 || "$*" == --keep-logs ]] || die "down: \"$*\" must be --keep-logs or nothing"
  lock
  process::stop_all
  [[ $# -eq 0 && ! -e "${CLUSTER_DIR}/unfinished" ]] || keep_logs
  # The marks go last, so that an interrupted removal can be repeated.
  find "${CLUSTER_DIR}" -mindepth 1 ! -name .lock ! -name .is-cluster -delete
  rm -f "${CLUSTER_DIR}/.is-cluster" "${CLUSTER_DIR}/.lock"
  rmdir "${CLUSTER_DIR}" 2>/dev/null || true
  log "cluster ${CLUSTER_NAME} is down"
}

status() {
  local file name pid missing=0
  [[ -f "${CLUSTER_DIR}/created" ]] || die "no cluster in ${CLUSTER_DIR}; start one with: hack/cluster.sh up"
  for file in "${CLUSTER_DIR}"/pids/*.pid; do
    name=$(basename "${file}" .pid)
    if pid=$(process::pid "${file}"); then
      printf '%-26s running  %s\n' "${name}" "${pid}"
    else
      printf '%-26s stopped\n' "${name}"
      missing=1
    fi
  done
  return "${missing}"
}

one() {
  local action=$1 component=${2:-}
  [[ "${component}" =~ ^(apiserver|controller|etcd)$ ]] || die "${action}: \"${component}\" must be apiserver, controller or etcd"
  [[ -f "${CLUSTER_DIR}/created" ]] || die "no cluster in ${CLUSTER_DIR}; start one with: hack/cluster.sh up"
  find_binaries
  lock
  [[ "${action}" == stop ]] || begin_start
  case "${action} ${component}" in
    "start apiserver") jobset::up_apiserver ;;
    "start controller") jobset::up_controller ;;
    "start etcd")
      [[ "${CLUSTER_STORAGE}" == etcd ]] || die "start etcd: this cluster was created with CLUSTER_STORAGE=${CLUSTER_STORAGE}"
      jobset::start etcd
      ;;
    *) jobset::stop "${component}" ;;
  esac
  [[ "${action}" == stop ]] || end_start
}

load_settings
check_settings
case "${1:-}" in
  up | down | status) "$@" ;;
  stop | start) one "$@" ;;
  kubectl)
    find_binaries
    shift
    admin "$@"
    ;;
  -h | --help | help) usage ;;
  *)
    usage >&2
    exit 1
    ;;
esac
