#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the manifests in artifacts/ against a real control plane: kustomize builds them, kube-apiserver accepts every
# object in a dry run and without a warning, our programs know the flags, and the roles allow what the programs need
# and nothing beyond that.
#
# By default it starts a control plane of its own and stops it at the end. MANIFESTS_CLUSTER_DIR names a directory of a
# running one (CLUSTER_COMPONENTS=none hack/cluster.sh up) that is used instead and left running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly builds="base overlays/embedded overlays/external-etcd
  overlays/embedded-cert-manager overlays/embedded-backup overlays/embedded-monitoring overlays/external-etcd-cert-manager
  overlays/embedded-backup-s3 overlays/external-etcd-backup-s3 overlays/embedded-ha overlays/embedded-ha-backup-s3
  overlays/embedded-archive overlays/external-etcd-postgres-archive"
readonly pods="restore/claim restore/s3 restore/stdin"
readonly cert_manager=github.com/cert-manager/cert-manager@v1.21.2
readonly cert_manager_sum=h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=
readonly prometheus_operator=github.com/prometheus-operator/prometheus-operator@v0.85.0
readonly prometheus_operator_sum=h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=

work=$(mktemp -d)
owned=
cleanup() {
  local status=$?
  trap - EXIT
  if [[ -n "${owned}" ]]; then
    CLUSTER_DIR="${owned}" hack/cluster.sh down 2>"${work}/down.log" || { cat "${work}/down.log" >&2; status=1; }
  fi
  rm -rf "${work}"
  exit "${status}"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

errors=0
fail() {
  echo "$*" >&2
  errors=$((errors + 1))
}

binaries=$(hack/ensure-binaries.sh --tests)
if [[ -n "${MANIFESTS_CLUSTER_DIR:-}" ]]; then
  cluster=$(realpath "${MANIFESTS_CLUSTER_DIR}")
else
  cluster="${work}/cluster"
  owned="${cluster}"
  CLUSTER_DIR="${cluster}" CLUSTER_COMPONENTS=none CLUSTER_NODES=1 hack/cluster.sh up >"${work}/up.log" 2>&1 ||
    { cat "${work}/up.log" >&2; exit 1; }
fi
kubectl() { "${binaries}/kubectl" --kubeconfig "${cluster}/kubeconfig" "$@"; }

# poll <seconds> <command...>
poll() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    read -r -t 0.2 _ <> <(:) || true
  done
}

# install_types <module@version> <checksum> <directory> <type>...: the real definitions of others, which their module has, so that their objects are
# checked like our objects.
install_types() {
  local module=$1 sum=$2 directory=$3 info dir type files=()
  shift 3
  info=$(cd "${work}" && GOFLAGS=-mod=mod GOWORK=off go mod download -json "${module}")
  grep -qF "\"Sum\": \"${sum}\"" <<<"${info}" ||
    { fail "${module}: the checksum of the download must be ${sum}"; return; }
  dir=$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"${info}")
  for type in "$@"; do
    files+=(-f "${dir}/${directory}/${type#*.}_${type%%.*}.yaml")
  done
  kubectl apply --server-side "${files[@]}" >/dev/null
  poll 60 served "$@" || fail "${module}: its types are not served"
}

served() {
  local type
  for type in "$@"; do
    kubectl get "${type}" --all-namespaces >/dev/null 2>&1 || return 1
  done
}

# One line for each container: image and arguments.
readonly one_container='{{.image}}{{range .args}} {{.}}{{end}}
'
readonly containers="{{range .items}}{{if or (eq .kind \"Deployment\") (eq .kind \"StatefulSet\")}}{{range .spec.template.spec.containers}}${one_container}{{end}}{{end}}\
{{if eq .kind \"CronJob\"}}{{range .spec.jobTemplate.spec.template.spec.containers}}${one_container}{{end}}{{end}}{{end}}"
# kubectl prints one object without a list.
readonly one_pod="{{range .spec.containers}}${one_container}{{end}}"

# check_objects <directory> [template]
check_objects() {
  local build=$1 template=${2:-${containers}} file
  file="${work}/${build//\//-}"
  if ! "${binaries}/kustomize" build "artifacts/${build}" >"${file}.yaml"; then
    fail "artifacts/${build}: does not build"
    return
  fi
  kubectl apply --server-side --force-conflicts --dry-run=server --warnings-as-errors -f "${file}.yaml" \
    -o go-template="${template}" >"${file}.containers" || fail "artifacts/${build}: refused by kube-apiserver"
}

# Backups of an external etcd have a program of their own.
programs() { if [[ "$1" == overlays/external-etcd-backup-s3 ]]; then echo 3; else echo 2; fi; }

# --help ends a program only after all of its flags were read, so an unknown flag or a bad value is an error here.
# check_flags <directory> <containers>
check_flags() {
  local build=$1 want=$2 program words output seen=0
  while read -ra words; do
    [[ ${#words[@]} -gt 0 ]] || continue
    program=bin/${words[0]%%[:@]*}
    seen=$((seen + 1))
    if [[ ! -x "${program}" ]]; then
      fail "artifacts/${build}: image ${words[0]} must be named after one of our programs"
    elif ! output=$("${program}" "${words[@]:1}" --help 2>&1); then
      fail "artifacts/${build}: ${program} refuses its flags: $(head -n 1 <<<"${output}")"
    fi
  done <"${work}/${build//\//-}.containers"
  [[ "${seen}" == "${want}" ]] || fail "artifacts/${build}: ${seen} containers found, must be ${want}"
}

# Lines of "who verb resource[/name or subresource] [namespace]"; without a namespace the question is about the whole cluster.
# ACTION stands for each of the actions on JobSets, SETACTION for each of those on LeaderWorkerSets.
readonly allowed="
jobset-apiserver create tokenreviews.authentication.k8s.io
jobset-apiserver create subjectaccessreviews.authorization.k8s.io
jobset-apiserver get configmaps/extension-apiserver-authentication kube-system
jobset-apiserver watch configmaps/extension-apiserver-authentication kube-system
jobset-apiserver get namespaces
jobset-apiserver get configmaps/jobset-apiserver-store kube-system
jobset-apiserver update configmaps/jobset-apiserver-store kube-system
jobset-apiserver get configmaps/jobset-apiserver-lost-owners kube-system
jobset-apiserver update configmaps/jobset-apiserver-lost-owners kube-system
jobset-apiserver list jobs.batch
jobset-apiserver list statefulsets.apps
jobset-apiserver list services
jobset-apiserver list podgroups.scheduling.k8s.io
jobset-apiserver list workloads.kueue.x-k8s.io
jobset-apiserver list leaderworkersets.leaderworkerset.x-k8s.io
jobset-apiserver get customresourcedefinitions.apiextensions.k8s.io
jobset-apiserver get apiservices.apiregistration.k8s.io/v1alpha2.jobset.x-k8s.io
jobset-apiserver list namespaces
jobset-apiserver get secrets/jobset-apiserver-serving jobset-system
jobset-apiserver watch secrets/jobset-apiserver-serving jobset-system
jobset-apiserver update secrets/jobset-apiserver-serving jobset-system
jobset-apiserver watch apiservices.apiregistration.k8s.io/v1alpha2.jobset.x-k8s.io
jobset-apiserver update apiservices.apiregistration.k8s.io/v1alpha2.jobset.x-k8s.io
jobset-apiserver update apiservices.apiregistration.k8s.io/v1alpha1.batch.jobset-apiserver.io
jobset-apiserver update apiservices.apiregistration.k8s.io/v1alpha1.archive.jobset-apiserver.io
jobset-apiserver update apiservices.apiregistration.k8s.io/v1.leaderworkerset.x-k8s.io
jobset-apiserver update apiservices.apiregistration.k8s.io/v1.disaggregatedset.x-k8s.io
jobset-apiserver update mutatingwebhookconfigurations.admissionregistration.k8s.io/jobset-apiserver-pods
jobset-apiserver watch mutatingwebhookconfigurations.admissionregistration.k8s.io
jobset-apiserver watch validatingwebhookconfigurations.admissionregistration.k8s.io
jobset-apiserver watch mutatingadmissionpolicies.admissionregistration.k8s.io
jobset-apiserver watch mutatingadmissionpolicybindings.admissionregistration.k8s.io
jobset-apiserver watch validatingadmissionpolicies.admissionregistration.k8s.io
jobset-apiserver watch validatingadmissionpolicybindings.admissionregistration.k8s.io
jobset-apiserver watch resourcequotas
jobset-apiserver update resourcequotas/status
jobset-apiserver get persistentvolumeclaims
jobset-apiserver list persistentvolumeclaims
jobset-apiserver create events.events.k8s.io
jobset-apiserver watch flowschemas.flowcontrol.apiserver.k8s.io
jobset-apiserver patch flowschemas.flowcontrol.apiserver.k8s.io/status
jobset-apiserver watch prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
jobset-controller-manager watch jobsets.jobset.x-k8s.io
jobset-controller-manager delete jobsets.jobset.x-k8s.io
jobset-controller-manager update jobsets.jobset.x-k8s.io/status
jobset-controller-manager update jobsets.jobset.x-k8s.io/finalizers
jobset-controller-manager watch leaderworkersets.leaderworkerset.x-k8s.io
jobset-controller-manager update leaderworkersets.leaderworkerset.x-k8s.io/status
jobset-controller-manager update leaderworkersets.leaderworkerset.x-k8s.io/finalizers
jobset-controller-manager create statefulsets.apps
jobset-controller-manager patch statefulsets.apps
jobset-controller-manager create controllerrevisions.apps
jobset-controller-manager delete controllerrevisions.apps
jobset-controller-manager delete pods
jobset-controller-manager update pods/finalizers
jobset-controller-manager watch nodes
jobset-controller-manager create jobs.batch
jobset-controller-manager delete jobs.batch
jobset-controller-manager patch jobs.batch
jobset-controller-manager patch jobs.batch/status
jobset-controller-manager create services
jobset-controller-manager patch services
jobset-controller-manager watch endpointslices.discovery.k8s.io
jobset-controller-manager update services/finalizers
jobset-controller-manager create endpointslices.discovery.k8s.io
jobset-controller-manager update endpointslices.discovery.k8s.io
jobset-controller-manager delete endpointslices.discovery.k8s.io
jobset-controller-manager create persistentvolumeclaims
jobset-controller-manager list pods
jobset-controller-manager watch pods
jobset-controller-manager watch nodes
jobset-controller-manager watch limitranges
jobset-controller-manager watch daemonsets.apps
jobset-controller-manager watch runtimeclasses.node.k8s.io
jobset-controller-manager get namespaces
jobset-controller-manager watch namespaces
jobset-controller-manager watch priorityclasses.scheduling.k8s.io
jobset-controller-manager create events.events.k8s.io
jobset-controller-manager update leases.coordination.k8s.io jobset-system
jobset-controller-manager create tokenreviews.authentication.k8s.io
jobset-controller-manager create subjectaccessreviews.authorization.k8s.io
jobset-controller-manager watch configmaps/extension-apiserver-authentication kube-system
user-view list jobsets.jobset.x-k8s.io default
user-view get jobsets.jobset.x-k8s.io/status default
user-view get jobsets.jobset.x-k8s.io/scale default
user-view watch leaderworkersets.leaderworkerset.x-k8s.io default
user-view get leaderworkersets.leaderworkerset.x-k8s.io/status default
user-view get leaderworkersets.leaderworkerset.x-k8s.io/scale default
user-edit deletecollection leaderworkersets.leaderworkerset.x-k8s.io default
user-edit update leaderworkersets.leaderworkerset.x-k8s.io/scale default
user-edit create leaderworkersets.leaderworkerset.x-k8s.io/SETACTION default
user-admin create leaderworkersets.leaderworkerset.x-k8s.io/SETACTION default
user-jobset-operator watch leaderworkersets.leaderworkerset.x-k8s.io default
user-jobset-operator create leaderworkersets.leaderworkerset.x-k8s.io/SETACTION default
user-edit create jobsets.jobset.x-k8s.io default
user-edit deletecollection jobsets.jobset.x-k8s.io default
user-edit watch jobsets.jobset.x-k8s.io default
user-edit get jobsets.jobset.x-k8s.io/scale default
user-edit update jobsets.jobset.x-k8s.io/scale default
user-edit patch jobsets.jobset.x-k8s.io/scale default
user-edit create jobsets.jobset.x-k8s.io/ACTION default
user-admin patch jobsets.jobset.x-k8s.io default
user-admin get jobsets.jobset.x-k8s.io/status default
user-admin patch jobsets.jobset.x-k8s.io/scale default
user-admin create jobsets.jobset.x-k8s.io/ACTION default
user-jobset-operator get jobsets.jobset.x-k8s.io default
user-jobset-operator list jobsets.jobset.x-k8s.io default
user-jobset-operator watch jobsets.jobset.x-k8s.io default
user-jobset-operator create jobsets.jobset.x-k8s.io/ACTION default
user-jobset-operator list jobs.batch default
user-jobset-operator watch jobs.batch default
user-jobset-operator list pods default
user-jobset-operator watch pods default
user-jobset-operator get pods/log default
user-jobset-operator list events default
user-jobset-operator list events.events.k8s.io default
user-jobset-operator get services default
user-jobset-operator get persistentvolumeclaims default
user-jobset-operator list resourcequotas default
user-jobset-operator list poddisruptionbudgets.policy default
user-jobset-operator list pods.metrics.k8s.io default
user-jobset-operator list workloads.kueue.x-k8s.io default
user-jobset-operator get localqueues.kueue.x-k8s.io default
user-jobset-operator get podgroups.scheduling.k8s.io default
user-view get runs.archive.jobset-apiserver.io default
user-view list runs.archive.jobset-apiserver.io default
user-edit list runs.archive.jobset-apiserver.io default
user-admin list runs.archive.jobset-apiserver.io default
user-admin delete runs.archive.jobset-apiserver.io default
user-jobset-operator get runs.archive.jobset-apiserver.io default
user-jobset-operator list runs.archive.jobset-apiserver.io default
user-none list featuregates.jobset.x-k8s.io
"

readonly denied="
jobset-apiserver * *
jobset-apiserver get secrets
jobset-apiserver get secrets jobset-system
jobset-apiserver create secrets jobset-system
jobset-apiserver get secrets/jobset-apiserver-tls jobset-system
jobset-apiserver get secrets/jobset-apiserver-serving-peers jobset-system
jobset-apiserver update secrets jobset-system
jobset-apiserver delete secrets/jobset-apiserver-serving jobset-system
jobset-apiserver list apiservices.apiregistration.k8s.io
jobset-apiserver update apiservices.apiregistration.k8s.io
jobset-apiserver update apiservices.apiregistration.k8s.io/v1.apps
jobset-apiserver delete apiservices.apiregistration.k8s.io/v1alpha2.jobset.x-k8s.io
jobset-apiserver update mutatingwebhookconfigurations.admissionregistration.k8s.io
jobset-apiserver get configmaps kube-system
jobset-apiserver update configmaps kube-system
jobset-apiserver delete configmaps/jobset-apiserver-store kube-system
jobset-apiserver create configmaps kube-system
jobset-apiserver create configmaps jobset-system
jobset-apiserver watch jobs.batch
jobset-apiserver update jobs.batch
jobset-apiserver list pods
jobset-apiserver get jobsets.jobset.x-k8s.io
jobset-apiserver get leaderworkersets.leaderworkerset.x-k8s.io
jobset-apiserver get statefulsets.apps
jobset-apiserver update pods
jobset-apiserver update resourcequotas
jobset-apiserver create persistentvolumeclaims
jobset-apiserver list events.events.k8s.io
jobset-apiserver patch events.events.k8s.io
jobset-apiserver update flowschemas.flowcontrol.apiserver.k8s.io
jobset-apiserver update validatingwebhookconfigurations.admissionregistration.k8s.io
jobset-apiserver impersonate users
jobset-controller-manager * *
jobset-controller-manager get secrets
jobset-controller-manager get secrets jobset-system
jobset-controller-manager update jobsets.jobset.x-k8s.io
jobset-controller-manager create sequentialjobs.batch.jobset-apiserver.io
jobset-controller-manager create leaderworkersets.leaderworkerset.x-k8s.io
jobset-controller-manager update leaderworkersets.leaderworkerset.x-k8s.io
jobset-controller-manager patch leaderworkersets.leaderworkerset.x-k8s.io
jobset-controller-manager delete leaderworkersets.leaderworkerset.x-k8s.io
jobset-controller-manager patch leaderworkersets.leaderworkerset.x-k8s.io/status
jobset-controller-manager update leaderworkersets.leaderworkerset.x-k8s.io/scale
jobset-controller-manager create leaderworkersets.leaderworkerset.x-k8s.io/SETACTION
jobset-controller-manager watch disaggregatedsets.disaggregatedset.x-k8s.io
jobset-controller-manager update statefulsets.apps
jobset-controller-manager delete statefulsets.apps
jobset-controller-manager update statefulsets.apps/status
jobset-controller-manager update controllerrevisions.apps
jobset-controller-manager update namespaces
jobset-controller-manager delete nodes
jobset-controller-manager list podgroups.scheduling.k8s.io
jobset-controller-manager create podgroups.scheduling.volcano.sh
jobset-controller-manager delete podgroups.scheduling.x-k8s.io
jobset-controller-manager create workloads.scheduling.k8s.io
jobset-controller-manager patch workloads.scheduling.k8s.io
jobset-controller-manager create pods
jobset-controller-manager update nodes
jobset-controller-manager update daemonsets.apps
jobset-controller-manager create priorityclasses.scheduling.k8s.io
jobset-controller-manager delete services
jobset-controller-manager update endpoints
jobset-controller-manager delete persistentvolumeclaims
jobset-controller-manager update leases.coordination.k8s.io kube-system
jobset-controller-manager get configmaps kube-system
jobset-controller-manager bind clusterroles.rbac.authorization.k8s.io
jobset-controller-manager impersonate users
user-view create jobsets.jobset.x-k8s.io default
user-view list jobsets.jobset.x-k8s.io kube-system
user-view create leaderworkersets.leaderworkerset.x-k8s.io default
user-view update leaderworkersets.leaderworkerset.x-k8s.io/scale default
user-view create leaderworkersets.leaderworkerset.x-k8s.io/SETACTION default
user-edit update leaderworkersets.leaderworkerset.x-k8s.io/status default
user-edit create leaderworkersets.leaderworkerset.x-k8s.io/rollback kube-system
user-jobset-operator create leaderworkersets.leaderworkerset.x-k8s.io default
user-jobset-operator update leaderworkersets.leaderworkerset.x-k8s.io default
user-jobset-operator delete leaderworkersets.leaderworkerset.x-k8s.io default
user-jobset-operator update leaderworkersets.leaderworkerset.x-k8s.io/status default
user-jobset-operator update leaderworkersets.leaderworkerset.x-k8s.io/scale default
user-view update jobsets.jobset.x-k8s.io/scale default
user-view create jobsets.jobset.x-k8s.io/ACTION default
user-edit update jobsets.jobset.x-k8s.io/status default
user-edit create jobsets.jobset.x-k8s.io/restart kube-system
user-jobset-operator create jobsets.jobset.x-k8s.io default
user-jobset-operator update jobsets.jobset.x-k8s.io default
user-jobset-operator patch jobsets.jobset.x-k8s.io default
user-jobset-operator delete jobsets.jobset.x-k8s.io default
user-jobset-operator update jobsets.jobset.x-k8s.io/status default
user-jobset-operator update jobsets.jobset.x-k8s.io/finalizers default
user-jobset-operator get jobsets.jobset.x-k8s.io/scale default
user-jobset-operator patch jobsets.jobset.x-k8s.io/scale default
user-jobset-operator create jobsets.jobset.x-k8s.io/restart kube-system
user-jobset-operator list pods kube-system
user-jobset-operator list nodes
user-jobset-operator get secrets default
user-jobset-operator get configmaps default
user-jobset-operator delete pods default
user-jobset-operator create pods/exec default
user-jobset-operator update jobs.batch default
user-jobset-operator delete jobs.batch default
user-jobset-operator list services default
user-jobset-operator update persistentvolumeclaims default
user-view list runs.archive.jobset-apiserver.io kube-system
user-view delete runs.archive.jobset-apiserver.io default
user-edit delete runs.archive.jobset-apiserver.io default
user-edit create runs.archive.jobset-apiserver.io default
user-edit update runs.archive.jobset-apiserver.io default
user-admin deletecollection runs.archive.jobset-apiserver.io default
user-admin update runs.archive.jobset-apiserver.io default
user-jobset-operator delete runs.archive.jobset-apiserver.io default
user-none get runs.archive.jobset-apiserver.io default
user-none get jobsets.jobset.x-k8s.io default
user-none create jobsets.jobset.x-k8s.io/restart default
"

# With the component embedded-members, in addition to those above.
readonly members_allowed="
jobset-apiserver get secrets/jobset-apiserver-serving-peers jobset-system
jobset-apiserver list secrets/jobset-apiserver-serving-peers jobset-system
jobset-apiserver watch secrets/jobset-apiserver-serving-peers jobset-system
jobset-apiserver update secrets/jobset-apiserver-serving-peers jobset-system
"
readonly members_denied="
jobset-apiserver get secrets jobset-system
jobset-apiserver get secrets/jobset-apiserver-tls jobset-system
jobset-apiserver create secrets jobset-system
jobset-apiserver delete secrets/jobset-apiserver-serving-peers jobset-system
jobset-apiserver get secrets/jobset-apiserver-serving-peers kube-system
jobset-controller-manager get secrets/jobset-apiserver-serving-peers jobset-system
"

# review <who> <verb> <resource> [namespace]: the question as the object that kube-apiserver answers.
review() {
  local who=$1 verb=$2 resource=$3 namespace=${4:-} subresource='' name='' group=''
  local user="system:serviceaccount:jobset-system:${who}" groups="system:authenticated, system:serviceaccounts"
  [[ "${who}" != user-* ]] || { user="manifests-${who}"; groups=system:authenticated; }
  case "${resource}" in
    */status | */finalizers | pods/* | jobsets.jobset.x-k8s.io/* | leaderworkersets.leaderworkerset.x-k8s.io/*) subresource=${resource##*/} ;;
    */*) name=${resource##*/} ;;
  esac
  resource=${resource%%/*}
  [[ "${resource}" != *.* ]] || group=${resource#*.}
  [[ "${resource}" != '*' ]] || group='*'
  cat <<YAML
---
apiVersion: authorization.k8s.io/v1
kind: SubjectAccessReview
spec:
  user: ${user}
  groups: [${groups}]
  resourceAttributes: {verb: "${verb}", group: "${group}", resource: "${resource%%.*}", subresource: "${subresource}",
    name: "${name}", namespace: "${namespace}"}
YAML
}

# Asks all questions of standard input in one call and prints an answer, true or false, for each.
answers() {
  local line words
  while read -r line; do
    read -ra words <<<"${line}"
    [[ ${#words[@]} -eq 0 ]] || review "${words[@]}"
  done | kubectl create -f - -o jsonpath='{.status.allowed}{"\n"}'
}

each_action() {
  local line action word actions
  while read -r line; do
    word=ACTION actions="restart suspend resume cancel retry"
    [[ "${line}" != *SETACTION* ]] || word=SETACTION actions="restart rollback pause resume"
    for action in ${actions}; do
      echo "${line/${word}/${action}}"
      [[ "${line}" == *ACTION* ]] || break
    done
  done
}

check_permissions() {
  local want=$1 questions got line
  mapfile -t questions < <(grep -v '^$' | each_action)
  mapfile -t got < <(printf '%s\n' "${questions[@]}" | answers)
  [[ ${#got[@]} == "${#questions[@]}" ]] || fail "${#got[@]} answers to ${#questions[@]} questions about permissions"
  for line in "${!questions[@]}"; do
    [[ "${got[line]:-}" == "${want}" ]] ||
      fail "artifacts/base/rbac: \"${questions[line]}\" must be allowed: ${want}, is: ${got[line]:-unknown}"
  done
}

# The component is applied after the permissions without it were checked. A role counts a moment after it was applied.
check_members() {
  local peers="jobset-apiserver get secrets/jobset-apiserver-serving-peers jobset-system"
  kubectl apply --server-side --warnings-as-errors -f artifacts/components/embedded-members/rbac.yaml >/dev/null ||
    fail "artifacts/components/embedded-members: refused by kube-apiserver"
  poll 30 may "${peers}" || fail "artifacts/components/embedded-members: does not let the server read the Secret of the members"
  check_permissions true <<<"${members_allowed}"
  check_permissions false <<<"${members_denied}"
  kubectl delete -f artifacts/components/embedded-members/rbac.yaml >/dev/null # another run begins without it
}

may() { [[ "$(answers <<<"$*")" == true ]]; }

# Only EndpointSlices of the controller that kube-proxy does not use, although the role permits all of them.
check_slices() {
  poll 30 slice_refused || fail "artifacts/base/rbac: the controller may create an EndpointSlice that kube-proxy uses"
  slice ', service.kubernetes.io/headless: ""' >/dev/null || fail "artifacts/base/rbac: the controller may not create its EndpointSlices"
}

slice_refused() { [[ "$(slice "" 2>&1)" == *"jobset-controller may write only EndpointSlices with the labels"* ]]; }

# slice <labels>: an EndpointSlice of the controller with more labels, as the controller.
slice() {
  kubectl create --dry-run=server --as=system:serviceaccount:jobset-system:jobset-controller-manager -f - <<YAML
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: manifests
  namespace: default
  labels: {endpointslice.kubernetes.io/managed-by: controller.jobset-apiserver.io$1}
addressType: IPv4
endpoints: []
YAML
}

# The built-in roles get their rules from a controller, a moment after our roles were applied.
bind_users() {
  local role newest right
  for role in view edit admin jobset-operator; do
    newest=("create jobsets.jobset.x-k8s.io/restart" "list runs.archive.jobset-apiserver.io")
    case "${role}" in
      view) newest[0]="get jobsets.jobset.x-k8s.io/scale" ;;
      admin) newest+=("delete runs.archive.jobset-apiserver.io") ;;
    esac
    kubectl create rolebinding "manifests-user-${role}" --namespace=default --clusterrole="${role}" \
      --user="manifests-user-${role}" --dry-run=client -o yaml | kubectl apply --server-side -f - >/dev/null
    for right in "${newest[@]}"; do
      poll 30 may "user-${role} ${right} default" || fail "artifacts/base/rbac: the role ${role} does not let a user ${right}"
    done
  done
}

# kube-apiserver returns the flow schema of a request in a header.
check_flow_schema() {
  local want
  want=$(kubectl get flowschema jobset-apiserver-delegated -o jsonpath='{.metadata.uid}')
  poll 30 falls_under "${want}" || fail "artifacts/base/rbac: questions of jobset-apiserver are not exempt in kube-apiserver"
}

falls_under() {
  kubectl create --validate=false --v=8 --as=system:serviceaccount:jobset-system:jobset-apiserver -f - 2>&1 <<'YAML' | grep -qi "x-kubernetes-pf-flowschema-uid: $1"
apiVersion: authorization.k8s.io/v1
kind: SubjectAccessReview
spec:
  user: somebody
  resourceAttributes: {verb: get, group: jobset.x-k8s.io, resource: jobsets, namespace: default}
YAML
}

make --no-print-directory -s build >&2
install_types "${cert_manager}" "${cert_manager_sum}" deploy/crds certificates.cert-manager.io issuers.cert-manager.io
install_types "${prometheus_operator}" "${prometheus_operator_sum}" example/prometheus-operator-crd \
  servicemonitors.monitoring.coreos.com prometheusrules.monitoring.coreos.com
# Objects in a namespace can be checked only when the namespace exists, and permissions only when the roles do.
kubectl apply --server-side --force-conflicts --warnings-as-errors -k artifacts/base/rbac >/dev/null || fail "artifacts/base/rbac: refused by kube-apiserver"
for build in ${builds}; do
  check_objects "${build}"
  check_flags "${build}" "$(programs "${build}")"
done
for build in ${pods}; do
  check_objects "${build}" "${one_pod}"
  check_flags "${build}" 1
done
check_objects etcd
bind_users
check_permissions true <<<"${allowed}"
check_permissions false <<<"${denied}"
check_members
check_slices
check_flow_schema

if ((errors > 0)); then
  echo "${errors} errors in artifacts/" >&2
  exit 1
fi
