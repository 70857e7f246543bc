# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables of cluster.sh

# Our two programs as they run in a cluster: each with the identity of its service account and the permissions of
# artifacts/base/rbac, the API server registered with kube-apiserver under its real certificate authority.

readonly namespace=jobset-system
readonly api_service=v1alpha2.jobset.x-k8s.io

jobset::rbac() {
  admin apply --server-side --force-conflicts -k "${root}/artifacts/base/rbac" >>"${CLUSTER_DIR}/logs/setup.log" 2>&1 ||
    fail_with_log setup "artifacts/base/rbac was not applied"
}

# A kubeconfig with a token of a service account. Tokens die with the cluster, whose signing key they depend on.
jobset::kubeconfig() {
  local account=$1 file="${CLUSTER_DIR}/$2.kubeconfig" token server
  if [[ -s "${file}" ]]; then
    return
  fi
  token=$(admin create token "${account}" --namespace "${namespace}" --duration 8760h) || die "no token for ${account}"
  server=$(admin config view -o jsonpath='{.clusters[0].cluster.server}')
  (
    umask 077
    cat >"${file}.new" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: ${server}
    certificate-authority-data: $(base64 -w0 "$(kwok_cluster_dir)/pki/ca.crt")
users:
- name: ${account}
  user:
    token: ${token}
contexts:
- name: local
  context:
    cluster: local
    user: ${account}
current-context: local
YAML
  )
  mv "${file}.new" "${file}"
}

# The port of a program is kept over restarts, unless something else has taken it meanwhile.
jobset::port() {
  local file="${CLUSTER_DIR}/ports/$1" port
  port=$(cat "${file}" 2>/dev/null) || port=$(port::free)
  if port::in_use "${port}"; then
    port=$(port::free)
  fi
  echo "${port}" >"${file}"
}

# Sets command=() to the command line of a component of ours.
jobset::command() {
  local extra
  case "$1" in
    apiserver)
      read -ra extra <<<"${CLUSTER_APISERVER_ARGS:-}"
      command=("${programs}/jobset-apiserver"
        "--kubeconfig=${CLUSTER_DIR}/apiserver.kubeconfig"
        "--bind-address=127.0.0.1" "--secure-port=$(cat "${CLUSTER_DIR}/ports/apiserver")"
        "--cert-dir=${CLUSTER_DIR}/pki/apiserver" "--tls-san=localhost,127.0.0.1,jobset-apiserver.${namespace}.svc"
        "--shutdown-delay-duration=1s")
      if [[ "${CLUSTER_STORAGE}" == etcd ]]; then
        command+=("--etcd-servers=http://127.0.0.1:$(cat "${CLUSTER_DIR}/ports/etcd")")
      else
        command+=("--data-dir=${CLUSTER_DIR}/data" "--allow-ephemeral-data")
      fi
      [[ -z "${CLUSTER_AUDIT_POLICY:-}" ]] || command+=("--audit-policy-file=${CLUSTER_AUDIT_POLICY}"
        "--audit-log-path=${CLUSTER_DIR}/logs/apiserver-audit.log")
      command+=("${extra[@]}")
      ;;
    controller)
      read -ra extra <<<"${CLUSTER_CONTROLLER_ARGS:-}"
      command=("${programs}/jobset-controller"
        "--kubeconfig=${CLUSTER_DIR}/controller.kubeconfig"
        "--leader-elect-resource-namespace=${namespace}"
        "--metrics-bind-address=127.0.0.1:$(cat "${CLUSTER_DIR}/ports/controller-metrics")"
        "--health-probe-bind-address=127.0.0.1:$(cat "${CLUSTER_DIR}/ports/controller-health")"
        "${extra[@]}")
      ;;
    etcd)
      local peer client
      peer="http://127.0.0.1:$(cat "${CLUSTER_DIR}/ports/etcd-peer")"
      client="http://127.0.0.1:$(cat "${CLUSTER_DIR}/ports/etcd")"
      command=("${binaries}/etcd" "--name=jobset" "--data-dir=${CLUSTER_DIR}/data/etcd"
        "--listen-client-urls=${client}" "--advertise-client-urls=${client}" "--listen-peer-urls=${peer}"
        "--initial-advertise-peer-urls=${peer}" "--initial-cluster=jobset=${peer}")
      ;;
    *) die "unknown component \"$1\": must be apiserver, controller or etcd" ;;
  esac
}

# The name of a component in pids/ and logs/; the control plane has an etcd of its own.
jobset::name() { echo "jobset-$1"; }

jobset::ports_of() {
  case "$1" in
    apiserver) echo apiserver ;;
    controller) echo controller-metrics controller-health ;;
    etcd) echo etcd etcd-peer ;;
  esac
}

# Starts a component unless it runs already with the same program and flags.
jobset::start() {
  local component=$1 name pid port command=()
  name=$(jobset::name "${component}")
  if pid=$(process::pid "${CLUSTER_DIR}/pids/${name}.pid"); then
    jobset::command "${component}"
    if process::is_current "${name}" "${command[@]}"; then
      return
    fi
    log "restarting ${name}: its program or flags have changed"
    process::stop 20 "${pid}"
  else
    log "starting ${name}"
  fi
  for port in $(jobset::ports_of "${component}"); do
    jobset::port "${port}"
  done
  jobset::command "${component}"
  process::start "${name}" "${command[@]}"
}

jobset::stop() {
  local pid name
  name=$(jobset::name "$1")
  if pid=$(process::pid "${CLUSTER_DIR}/pids/${name}.pid"); then
    process::stop 30 "${pid}"
  fi
}

jobset::must_run() { process::must_run "$(jobset::name "$1")"; }

# Endpoints may not be loopback addresses, so the Service names this machine instead.
jobset::register() {
  local ca
  ca=$(base64 -w0 "${CLUSTER_DIR}/pki/apiserver/ca.crt")
  admin apply --server-side --force-conflicts -f - >>"${CLUSTER_DIR}/logs/setup.log" <<YAML
apiVersion: v1
kind: Service
metadata:
  name: jobset-apiserver
  namespace: ${namespace}
spec:
  type: ExternalName
  externalName: localhost
  ports:
  - {name: https, port: $(cat "${CLUSTER_DIR}/ports/apiserver"), protocol: TCP}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: ${api_service}
spec:
  group: jobset.x-k8s.io
  version: v1alpha2
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: ${ca}
  service:
    namespace: ${namespace}
    name: jobset-apiserver
    port: $(cat "${CLUSTER_DIR}/ports/apiserver")
YAML
}

jobset::available() {
  jobset::must_run apiserver
  [[ "$(admin get apiservice "${api_service}" -o jsonpath='{.status.conditions[?(@.type=="Available")].status}' 2>/dev/null)" == True ]] &&
    admin get --raw /apis/jobset.x-k8s.io/v1alpha2 >/dev/null 2>&1
}

jobset::ca_written() {
  jobset::must_run apiserver
  [[ -s "${CLUSTER_DIR}/pki/apiserver/ca.crt" ]]
}

jobset::controller_ready() {
  jobset::must_run controller
  http::ok "$(cat "${CLUSTER_DIR}/ports/controller-health")" /readyz
}

jobset::up_apiserver() {
  [[ "${CLUSTER_STORAGE}" != etcd ]] || jobset::start etcd
  jobset::start apiserver
  poll 60 jobset::ca_written || fail_with_log jobset-apiserver "jobset-apiserver wrote no ca.crt"
  jobset::register
  poll 60 jobset::available ||
    fail_with_log jobset-apiserver "APIService ${api_service} is not available: $(admin get apiservice "${api_service}" \
      -o jsonpath='{.status.conditions[?(@.type=="Available")].message}')"
}

jobset::up_controller() {
  jobset::start controller
  poll 60 jobset::controller_ready || fail_with_log jobset-controller "jobset-controller is not ready"
}
