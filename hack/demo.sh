#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Starts the local cluster, runs a training JobSet in it and follows it until it is Completed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=lib/steps.sh
source hack/lib/steps.sh

readonly example=artifacts/examples/training.yaml
readonly name=training
readonly timeout_seconds=180
readonly log=_output/demo.log

# What is printed for each change: the phase, the Jobs of each group, and the conditions that hold.
readonly template='
{{- with .status}}
{{- if .terminalState}}{{.terminalState}}{{else}}Running{{end}}
{{- range .replicatedJobsStatus}} | {{.name}}: {{.active}} active, {{.ready}} ready, {{.succeeded}} succeeded, {{.failed}} failed{{end}}
{{- range .conditions}}{{if eq .status "True"}} | {{.type}} ({{.reason}}){{end}}{{end}}
{{- else}}Accepted{{end}}
'

kubectl() { "${bin}/kubectl" --kubeconfig "${kubeconfig}" "$@"; }

# Headings are bold on a terminal.
say() { if [[ -t 1 ]]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

# Prints a command and runs it.
show() {
  say "$ kubectl $*"
  kubectl "$@"
}

# The same for a command of the plugin.
plugin() {
  say "$ kubectl jobset $*"
  "${CLUSTER_BIN:-bin}/kubectl-jobset" --kubeconfig "${kubeconfig}" "$@"
}

# Follows the JobSet with a watch until it has finished; the last line decides.
follow() {
  local line last='' start=${SECONDS} watch
  exec {changes}< <(exec "${bin}/kubectl" --kubeconfig "${kubeconfig}" get jobset "${name}" --watch -o go-template="${template}")
  watch=$!
  # shellcheck disable=SC2064 # the process id of now is the one to stop
  trap "kill ${watch} 2>/dev/null || true" EXIT
  while ((SECONDS - start < timeout_seconds)) && read -r -t "${timeout_seconds}" -u "${changes}" line; do
    if [[ -n "${line}" && "${line}" != "${last}" ]]; then
      printf '%4ss  %s\n' "$((SECONDS - start))" "${line}"
      last=${line}
    fi
    case "${line}" in Completed* | Failed*) break ;; esac
  done
  kill "${watch}" 2>/dev/null || true
  trap - EXIT
  exec {changes}<&-
  [[ "${last}" == Completed* ]]
}

# The minutes are those of the first time, on two cores; docs/performance.md has the measurement.
echo "The first time takes about ten minutes, later ones less than one. All output of the steps is in ${log}."
steps::begin 4 "${log}"
steps::run "downloading modules (first time: a minute or more)" bash -c '
  hack/ensure-binaries.sh --download && go list -deps ./cmd/... ./hack/localcluster >/dev/null'
steps::run "building the control plane (first time: about six minutes)" hack/ensure-binaries.sh
steps::run "building our programs (first time: about three minutes)" bash -c '
  hack/cluster.sh --help >/dev/null && { [[ -n "${CLUSTER_BIN:-}" ]] || make --no-print-directory build; }'
steps::run "starting the cluster (15 seconds)" hack/cluster.sh up
bin=$(hack/ensure-binaries.sh)
kubeconfig=$(realpath -m "${CLUSTER_DIR:-.cluster}")/kubeconfig

kubectl delete jobset "${name}" --ignore-not-found --cascade=foreground --timeout=60s >/dev/null
show apply -f "${example}"

say "following jobset/${name}:"
if ! follow; then
  kubectl describe jobset "${name}" || true
  kubectl get jobs,pods -l "jobset.sigs.k8s.io/jobset-name=${name}" || true
  echo "jobset/${name} did not complete within ${timeout_seconds}s; logs are in $(dirname "${kubeconfig}")/logs/" >&2
  exit 1
fi

show get jobset
show get jobset -o wide
show get jobs -l "jobset.sigs.k8s.io/jobset-name=${name}"
say "$ kubectl explain jobset.spec.replicatedJobs | head -n 24"
explanation=$(kubectl explain jobset.spec.replicatedJobs)
head -n 24 <<<"${explanation}"
show events --for "jobset/${name}"
plugin timeline "${name}"
plugin why "${name}"

say "the cluster keeps running; look further with"
cat <<TEXT
  hack/cluster.sh kubectl get jobset ${name} -o yaml
  hack/cluster.sh kubectl apply -f artifacts/examples/failure-policy.yaml
  bin/kubectl-jobset --kubeconfig ${kubeconfig} tree failure-policy     # docs/kubectl.md
  export KUBECONFIG=${kubeconfig}     # for a kubectl of your own

and stop it with
  make down
TEXT
