# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Long-running processes of one cluster directory. A process belongs to the cluster when its command line names a file
# below ${CLUSTER_DIR}; a process id alone proves nothing, since after a crash another program may have got it.

log() { echo "$*" >&2; }

die() {
  log "error: $*"
  exit 1
}

# Whether the process exists and has not ended. One that ended stays in the table until its parent has waited for it.
process::lives() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  stat=${stat##*") "}
  [[ "${stat%% *}" != [ZX] ]]
}

# Between two programs the command line of a living process is empty for a moment, under load for a while. No pipe is used:
# a reader that has seen enough would end the writer, and pipefail would make that a failure.
process::is_ours() {
  local pid=$1 words deadline=$((SECONDS + 10)) silence
  while :; do
    { mapfile -d '' -t words <"/proc/${pid}/cmdline"; } 2>/dev/null || return 1
    if ((${#words[@]} > 0)); then
      [[ "${words[*]}" == *"${CLUSTER_DIR}/"* ]]
      return
    fi
    # What has no executable is a thread of the kernel.
    { process::lives "${pid}" && readlink "/proc/${pid}/exe" >/dev/null; } || return 1
    ((SECONDS < deadline)) || return 1
    exec {silence}<> <(:)
    read -r -t 0.01 -u "${silence}" _ || true
    exec {silence}>&-
  done
}

# Prints the id of the process that a pid file names, and fails when that process is not running or not ours.
process::pid() {
  local file=$1 pid
  pid=$(cat "${file}" 2>/dev/null) && [[ "${pid}" =~ ^[0-9]+$ ]] && process::is_ours "${pid}" && echo "${pid}"
}

# process::start <name> <command...>: detached from the terminal and from the lock, output to logs/<name>.log.
process::start() {
  local name=$1
  shift
  printf '%s\n' "$@" >"${CLUSTER_DIR}/pids/${name}.command"
  setsid "$@" </dev/null >>"${CLUSTER_DIR}/logs/${name}.log" 2>&1 9>&- &
  local pid=$!
  echo "${pid}" >"${CLUSTER_DIR}/pids/${name}.pid"
  # Until it has become the program the process is a copy of this shell, which counts as none of the cluster's.
  poll 10 process::began "${pid}" || true
}

# Whether the process has become one of this cluster, or has ended.
process::began() { process::is_ours "$1" || ! process::lives "$1"; }

# process::must_run <name>: fails with the end of the log once the process has ended that this command started or found.
process::must_run() {
  local name=$1 pid code=0
  pid=$(cat "${CLUSTER_DIR}/pids/${name}.pid")
  ! process::lives "${pid}" || return 0
  wait "${pid}" 2>/dev/null || code=$?
  # 127 is the answer for a process that another command has started.
  fail_with_log "${name}" "${name} ended$( ((code == 127)) || echo " with exit code ${code}")"
}

# fail_with_log <name> <message>: prints the last lines of logs/<name>.log and the message, and fails.
fail_with_log() {
  local file="${CLUSTER_DIR}/logs/$1.log"
  log "the last lines of ${file}:"
  { tail -n 20 "${file}" 2>/dev/null || echo "(no log)"; } | sed 's/^/  /' >&2
  die "$2"
}

# Whether the process runs this very command from the program that is on disk now.
process::is_current() {
  local name=$1 pid
  shift
  pid=$(process::pid "${CLUSTER_DIR}/pids/${name}.pid") || return 1
  [[ "/proc/${pid}/exe" -ef "$1" ]] && cmp -s "${CLUSTER_DIR}/pids/${name}.command" <(printf '%s\n' "$@")
}

process::gone() {
  local pid
  for pid in "$@"; do
    ! process::is_ours "${pid}" || return 1
  done
}

# process::stop <seconds> <pid...>: asks all of them to stop, and ends those that still run after that time.
process::stop() {
  local patience=$1 pid
  shift
  [[ $# -gt 0 ]] || return 0
  kill -TERM "$@" 2>/dev/null || true
  if ! poll "${patience}" process::gone "$@"; then
    for pid in "$@"; do
      ! process::is_ours "${pid}" || kill -KILL "${pid}" 2>/dev/null || true
    done
    poll 10 process::gone "$@" || die "processes $* do not end"
  fi
}

# Every process of this cluster: those with a pid file, and those whose start was cut off before the file was written.
process::all() {
  local dir pid program
  for dir in /proc/[0-9]*; do
    pid=${dir#/proc/}
    program=$(readlink "${dir}/exe" 2>/dev/null) || continue
    program=${program% (deleted)}
    case "${program##*/}" in
      etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kwok-controller | kwok | kwokctl | jobset-apiserver | jobset-controller)
        ! process::is_ours "${pid}" || echo "${pid}"
        ;;
    esac
  done
}

# Stops all processes of this cluster, looking again until there are none: one of them may have been starting another.
process::stop_all() {
  local pids
  while mapfile -t pids < <(process::all) && ((${#pids[@]} > 0)); do
    process::stop 5 "${pids[@]}"
  done
}

# poll <seconds> <command...>: until the command succeeds; fails when the time is over.
poll() {
  local deadline=$((SECONDS + $1)) silence
  shift
  exec {silence}<> <(:)
  until "$@"; do
    if ((SECONDS >= deadline)); then
      exec {silence}>&-
      return 1
    fi
    read -r -t 0.1 -u "${silence}" _ || true
  done
  exec {silence}>&-
}

# with_progress <text> <command...>: says every 15 seconds that the command still runs.
with_progress() {
  local text=$1 start=${SECONDS} pulse status=0
  shift
  log "${text}"
  ( exec {silence}<> <(:)
    while ! read -r -t 15 -u "${silence}" _; do log "${text} ... $((SECONDS - start))s"; done ) 9>&- >&2 &
  pulse=$!
  "$@" || status=$?
  kill "${pulse}" 2>/dev/null || true
  wait "${pulse}" 2>/dev/null || true
  return "${status}"
}

port::in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# port::free [n]: prints n different free ports, below the range from which the kernel picks ports for outgoing connections.
port::free() {
  local wanted=${1:-1} port
  local -A chosen=()
  for _ in {1..500}; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if [[ -z "${chosen[${port}]:-}" ]] && ! port::in_use "${port}"; then
      chosen[${port}]=yes
      echo "${port}"
      ((${#chosen[@]} < wanted)) || return 0
    fi
  done
  die "no free port between 20000 and 31999"
}

# http::ok <port> <path>: whether a plain HTTP server on this machine answers 200.
http::ok() {
  local port=$1 path=$2 status
  {
    exec 3<>"/dev/tcp/127.0.0.1/${port}" || return 1
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "${path}" >&3
    read -r -t 5 _ status _ <&3 || status=none
    exec 3>&-
  } 2>/dev/null
  [[ "${status}" == 200 ]]
}
