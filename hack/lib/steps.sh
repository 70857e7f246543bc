# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Steps of a script that a user watches: one line each. Everything that a step prints goes to a log. Sourced; the caller calls
# `steps::begin` once and `steps::run` for each step.

# steps::begin <number of steps> <log>
steps::begin() {
  steps_total=$1 steps_log=$2 steps_done=0
  mkdir -p "$(dirname "${steps_log}")"
  : >"${steps_log}"
}

# steps::run <what it does> <command> [argument...]: runs the command, which must not be a function, and prints how long it took. If it
# fails, the end of its output is printed.
steps::run() {
  local text=$1 start=${SECONDS} first status=0
  shift
  first=$(($(wc -l <"${steps_log}") + 1))
  steps_done=$((steps_done + 1))
  printf '%d of %d: %s ... ' "${steps_done}" "${steps_total}" "${text}"
  "$@" >>"${steps_log}" 2>&1 || status=$?
  if ((status == 0)); then
    printf '%ds\n' "$((SECONDS - start))"
    return
  fi
  printf 'failed after %ds\n' "$((SECONDS - start))"
  tail -n "+${first}" "${steps_log}" | tail -n 20 >&2
  echo "all output is in ${steps_log}" >&2
  return "${status}"
}
