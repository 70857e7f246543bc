#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Starts the local cluster, and runs a training JobSet in it: a worker is killed, the set restarts, kubectl jobset names the cause, and the
# set runs until it is Completed.
#
#   hack/demo.sh                     the whole demonstration
#   hack/demo.sh --kubeconfig FILE   only the training, in a local cluster that runs, in the namespace that FILE names
#
# DEMO_TIMEOUT_SECONDS limits how long each part of the training may take (180).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=lib/steps.sh
source hack/lib/steps.sh

readonly example=artifacts/examples/training.yaml
readonly name=training
# The worker that is killed: the third pod of the second Job of workers.
readonly worker_job=${name}-workers-1 worker_index=2
readonly timeout_seconds=${DEMO_TIMEOUT_SECONDS:-180}
readonly log=_output/demo.log

# What is printed for each change: the phase, the attempt, the Jobs of each group, and the conditions that hold. The worker that fails is
# killed once all Jobs are ready.
readonly template='
{{- with .status}}
{{- if .terminalState}}{{.terminalState}}{{else}}Running{{end}}
{{- range .attempts}}{{if not .endTime}} | attempt {{.number}}{{if .readyTime}}, ready{{end}}{{end}}{{end}}
{{- range .replicatedJobsStatus}} | {{.name}}: {{.active}} active, {{.ready}} ready, {{.succeeded}} succeeded, {{.failed}} failed{{end}}
{{- range .conditions}}{{if eq .status "True"}} | {{.type}} ({{.reason}}){{end}}{{end}}
{{- else}}Accepted{{end}}
'

# A request without an answer ends after a minute.
kubectl() { "${bin}/kubectl" --kubeconfig "${kubeconfig}" --request-timeout=60s "$@"; }

# Headings are bold on a terminal.
say() { if [[ -t 1 ]]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

# What happens next, in a sentence.
note() { printf '\n# %s\n' "$*"; }

# Prints a command and runs it.
show() {
  say "$ kubectl $*"
  kubectl "$@"
}

# The same for a command of the plugin.
plugin() {
  say "$ kubectl jobset $*"
  kubectl_jobset "$@"
}

kubectl_jobset() { "${CLUSTER_BIN:-bin}/kubectl-jobset" --kubeconfig "${kubeconfig}" --request-timeout=60s "$@"; }

# follow <pattern>...: follows the JobSet with a watch until a line matches a pattern, or the set has finished. Fails if the last line
# matches none.
follow() {
  local line last='' start=${SECONDS} watch
  say "following jobset/${name}:"
  exec {changes}< <(exec "${bin}/kubectl" --kubeconfig "${kubeconfig}" get jobset "${name}" --watch -o go-template="${template}")
  watch=$!
  # shellcheck disable=SC2064 # the process id of now is the one to stop
  trap "kill ${watch} 2>/dev/null || true" EXIT
  while ((SECONDS - start < timeout_seconds)) && read -r -t "${timeout_seconds}" -u "${changes}" line; do
    if [[ -n "${line}" && "${line}" != "${last}" ]]; then
      printf '%4ss  %s\n' "$((SECONDS - begun))" "${line}"
      last=${line}
    fi
    matches "${line}" "$@" 'Completed*' 'Failed*' && break
  done
  kill "${watch}" 2>/dev/null || true
  trap - EXIT
  exec {changes}<&-
  matches "${last}" "$@"
}

# matches <text> <pattern>...: whether the text matches one of the patterns of bash.
matches() {
  local text=$1 pattern
  shift
  for pattern in "$@"; do
    # shellcheck disable=SC2053 # a pattern
    [[ "${text}" == ${pattern} ]] && return
  done
  return 1
}

# failed <what did not happen>: shows the state of the set, and ends.
failed() {
  kubectl describe jobset "${name}" || true
  kubectl get jobs,pods -l "jobset.sigs.k8s.io/jobset-name=${name}" || true
  kubectl_jobset why "${name}" || true
  echo "jobset/${name} $1 within ${timeout_seconds}s; logs are in $(dirname "${kubeconfig}")/logs/" >&2
  exit 1
}

# Starts the cluster. The minutes are those of the first time, on two cores; docs/performance.md has the measurement.
start() {
  echo "The first time takes about ten minutes, later ones less than one. All output of the steps is in ${log}."
  steps::begin 4 "${log}"
  steps::run "downloading modules (first time: a minute or more)" bash -c '
    hack/ensure-binaries.sh --download && go list -deps ./cmd/... ./hack/localcluster >/dev/null'
  steps::run "building the control plane (first time: about six minutes)" hack/ensure-binaries.sh
  steps::run "building our programs (first time: about three minutes)" bash -c '
    hack/cluster.sh --help >/dev/null && { [[ -n "${CLUSTER_BIN:-}" ]] || make --no-print-directory build; }'
  steps::run "starting the cluster (15 seconds)" hack/cluster.sh up
}

# train runs the set: a worker is killed, the set restarts, and completes.
train() {
  local pod
  begun=${SECONDS}
  note "A training run on eight simulated machines: a launcher, and two Jobs of four workers. Three restarts are allowed."
  show apply -f "${example}"
  follow '*attempt 1, ready*' || failed "was not ready"

  note "A worker runs out of memory: on a simulated machine, annotations make it end with exit code 137."
  pod=$(kubectl get pods -o name -l "batch.kubernetes.io/job-name=${worker_job},batch.kubernetes.io/job-completion-index=${worker_index}")
  [[ -n "${pod}" ]] || failed "had no pod with the index ${worker_index} in ${worker_job}"
  show annotate "${pod}" --overwrite jobset-apiserver.io/kwok-outcome=failed jobset-apiserver.io/kwok-exit-code=137 \
    jobset-apiserver.io/kwok-run-seconds=0
  note "All Jobs start again, because they need each other."
  follow '*attempt 2, ready*' || failed "did not restart"

  note "What happened? The pod that failed is gone, but the set remembers it."
  plugin why "${name}"
  plugin timeline "${name}"

  note "The second attempt runs to its end."
  follow 'Completed*' || failed "did not complete"
  show get jobset
  show get jobset -o wide
  show get jobs -l "jobset.sigs.k8s.io/jobset-name=${name}"
  plugin timeline "${name}"
  plugin why "${name}"
  show events --for "jobset/${name}"
  say "the training took $((SECONDS - begun)) seconds"
}

kubeconfig=$(realpath -m "${CLUSTER_DIR:-.cluster}")/kubeconfig
case "${1:-}" in
  '') start ;;
  --kubeconfig)
    kubeconfig=${2:-}
    if [[ ! -r "${kubeconfig}" ]]; then
      echo "hack/demo.sh: --kubeconfig must be the kubeconfig of a local cluster, such as .cluster/kubeconfig; make up starts one" >&2
      exit 1
    fi
    ;;
  *) echo "hack/demo.sh: unknown argument $1; must be --kubeconfig FILE, or none" >&2; exit 1 ;;
esac
bin=$(hack/ensure-binaries.sh)
kubectl delete jobset "${name}" --ignore-not-found --cascade=foreground --timeout=60s >/dev/null
train
[[ -z "${1:-}" ]] || exit 0

say "the cluster keeps running; look further with"
cat <<TEXT
  hack/cluster.sh kubectl get jobset ${name} -o yaml
  hack/cluster.sh kubectl apply -f artifacts/examples/failure-policy.yaml
  bin/kubectl-jobset --kubeconfig ${kubeconfig} tree failure-policy     # docs/kubectl.md
  export KUBECONFIG=${kubeconfig}     # for a kubectl of your own

and stop it with
  make down
TEXT
