# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables of cluster.sh

# The Kubernetes control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and KWOK, which plays the
# nodes. kwokctl writes their certificates and command lines once, on creation, and starts what does not run.

readonly controlplane_programs="etcd kube-apiserver kube-controller-manager kube-scheduler kwok-controller"

kwok_cluster_dir() { echo "${CLUSTER_DIR}/kwok/clusters/${CLUSTER_NAME}"; }

# In a session of its own: what it starts stays in its process group, and must not end with the caller's on Ctrl-C.
kwokctl() {
  PATH="${binaries}:${PATH}" KWOK_WORKDIR="${CLUSTER_DIR}/kwok" KWOK_KUBE_VERSION=v1.36.3 \
    setsid --wait kwokctl --name "${CLUSTER_NAME}" "$@" 9>&- >>"${CLUSTER_DIR}/logs/kwokctl.log" 2>&1
}

# kubectl as administrator of this cluster.
admin() { "${binaries}/kubectl" --kubeconfig "${CLUSTER_DIR}/kubeconfig" "$@"; }

# "--key=value" words as the list of extra arguments that kwokctl reads.
controlplane::extra_args() {
  local word
  for word in "$@"; do
    [[ "${word}" == --*=* ]] || die "CLUSTER_KUBE_APISERVER_ARGS: \"${word}\" must have the form --flag=value"
    word=${word#--}
    printf '  - {key: %s, value: "%s"}\n' "${word%%=*}" "${word#*=}"
  done
}

# The limits on the clients are raised, priority and fairness stays on. A quota that is older than the discovery of
# JobSets gets its status with the next full round over the quotas, which by default comes after five minutes.
# There is one of each program, and nothing restarts it: without an election it has no lease that it could lose, and then
# end, when the machine is slow.
controlplane::write_config() {
  local pki="${CLUSTER_DIR}/pki" words port extra
  mapfile -t port < <(port::free 6)
  read -ra words <<<"${CLUSTER_KUBE_APISERVER_ARGS:-}"
  extra=$(controlplane::extra_args "${words[@]}") || exit 1
  cat <<YAML
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
options:
  bindAddress: 127.0.0.1
  etcdPort: ${port[0]}
  etcdPeerPort: ${port[1]}
  kubeApiserverPort: ${port[2]}
  kubeControllerManagerPort: ${port[3]}
  kubeSchedulerPort: ${port[4]}
  kwokControllerPort: ${port[5]}
componentsPatches:
- name: kube-apiserver
  extraArgs:
  - {key: proxy-client-cert-file, value: "${pki}/front-proxy-client.crt", override: true}
  - {key: proxy-client-key-file, value: "${pki}/front-proxy-client.key", override: true}
  - {key: requestheader-client-ca-file, value: "${pki}/front-proxy-ca.crt"}
  - {key: requestheader-allowed-names, value: front-proxy-client}
  - {key: requestheader-username-headers, value: X-Remote-User}
  - {key: requestheader-uid-headers, value: X-Remote-Uid}
  - {key: requestheader-group-headers, value: X-Remote-Group}
  - {key: requestheader-extra-headers-prefix, value: X-Remote-Extra-}
${extra}
- name: kube-controller-manager
  extraArgs:
  - {key: leader-elect, value: "false"}
  - {key: resource-quota-sync-period, value: 10s}
  - {key: endpoint-updates-batch-period, value: 1s}
  - {key: endpointslice-updates-batch-period, value: 1s}
  - {key: kube-api-qps, value: "500"}
  - {key: kube-api-burst, value: "1000"}
- name: kube-scheduler
  extraArgs:
  - {key: leader-elect, value: "false"}
  - {key: kube-api-qps, value: "500"}
  - {key: kube-api-burst, value: "1000"}
---
YAML
  cat "${root}/hack/kwok/stages.yaml"
}

controlplane::create() {
  local audit=() program
  rm -rf "${CLUSTER_DIR}/kwok" "${CLUSTER_DIR}/data"
  log "creating the control plane in ${CLUSTER_DIR}"
  [[ -f "${CLUSTER_DIR}/pki/front-proxy-client.key" ]] ||
    (cd "${root}" && go run ./hack/certs --dir "${CLUSTER_DIR}/pki") || die "the front-proxy certificates were not written"
  controlplane::write_config >"${CLUSTER_DIR}/kwok.yaml"
  [[ -z "${CLUSTER_KUBE_AUDIT_POLICY:-}" ]] || audit=(--kube-audit-policy "${CLUSTER_KUBE_AUDIT_POLICY}")
  rm -f "${CLUSTER_DIR}/kubeconfig"
  kwokctl create cluster --runtime binary --config "${CLUSTER_DIR}/kwok.yaml" --kubeconfig "${CLUSTER_DIR}/kubeconfig.kwok" \
    --etcd-binary "${binaries}/etcd" --kube-apiserver-binary "${binaries}/kube-apiserver" \
    --kube-controller-manager-binary "${binaries}/kube-controller-manager" \
    --kube-scheduler-binary "${binaries}/kube-scheduler" --kwok-controller-binary "${binaries}/kwok" \
    --kube-authorization --kube-admission --secure-port --disable-qps-limits=false "${audit[@]}" --timeout 120s ||
    fail_with_log kwokctl "the control plane did not start"
  "${binaries}/kubectl" --kubeconfig "${CLUSTER_DIR}/kubeconfig.kwok" config view --flatten >"${CLUSTER_DIR}/kubeconfig"
  rm -f "${CLUSTER_DIR}/kubeconfig.kwok"
  chmod 0600 "${CLUSTER_DIR}/kubeconfig"
  for program in ${controlplane_programs}; do
    ln -sfn "../kwok/clusters/${CLUSTER_NAME}/logs/${program}.log" "${CLUSTER_DIR}/logs/${program}.log"
    ln -sfn "../kwok/clusters/${CLUSTER_NAME}/pids/${program}.pid" "${CLUSTER_DIR}/pids/${program}.pid"
  done
  [[ ${#audit[@]} -eq 0 ]] ||
    ln -sfn "../kwok/clusters/${CLUSTER_NAME}/logs/audit.log" "${CLUSTER_DIR}/logs/kube-apiserver-audit.log"
  touch "${CLUSTER_DIR}/created"
}

# Removes pid files of processes that ended: kwokctl trusts the files, whatever runs under that id now.
controlplane::forget_dead() {
  local program
  for program in ${controlplane_programs}; do
    process::pid "${CLUSTER_DIR}/pids/${program}.pid" >/dev/null || rm -f "$(kwok_cluster_dir)/pids/${program}.pid"
  done
}

controlplane::all_run() {
  local program
  for program in ${controlplane_programs}; do
    process::pid "${CLUSTER_DIR}/pids/${program}.pid" >/dev/null || return 1
  done
}

controlplane::up() {
  if [[ ! -f "${CLUSTER_DIR}/created" ]]; then
    # What an interrupted creation left cannot be trusted to be whole.
    process::stop_all
    controlplane::create
  elif ! controlplane::all_run; then
    log "starting what does not run of the control plane"
    controlplane::forget_dead
    kwokctl start cluster || fail_with_log kwokctl "the control plane did not start"
  fi
  poll 60 controlplane::ready || fail_with_log kube-apiserver "kube-apiserver is not ready"
}

controlplane::ready() { admin get --raw /readyz >/dev/null 2>&1; }

# Nodes have the size of an accelerator machine; four in a rack, two racks in a zone, for placement by topology.
controlplane::write_nodes() {
  local n
  for ((n = 0; n < CLUSTER_NODES; n++)); do
    cat <<YAML
---
apiVersion: v1
kind: Node
metadata:
  name: $(printf 'node-%03d' "${n}")
  labels:
    type: kwok
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    kubernetes.io/hostname: $(printf 'node-%03d' "${n}")
    topology.kubernetes.io/zone: zone-$((n / 8))
    jobset-apiserver.io/rack: rack-$((n / 4))
  annotations:
    kwok.x-k8s.io/node: fake
    node.alpha.kubernetes.io/ttl: "0"
status:
  addresses:
  - {type: InternalIP, address: 10.200.$((n / 250 + 1)).$((n % 250 + 1))}
  - {type: Hostname, address: $(printf 'node-%03d' "${n}")}
  allocatable: &size
    cpu: "64"
    memory: 512Gi
    pods: "250"
    nvidia.com/gpu: "8"
  capacity: *size
  nodeInfo: {architecture: amd64, operatingSystem: linux, kubeletVersion: kwok-v0.8.0, bootID: "", containerRuntimeVersion: "", kernelVersion: "", kubeProxyVersion: "", machineID: "", osImage: "", systemUUID: ""}
YAML
  done
}

controlplane::nodes_ready() {
  local ready
  ready=$(admin get nodes -l type=kwok --no-headers 2>/dev/null | awk '$2 == "Ready"' | wc -l)
  ((ready >= CLUSTER_NODES))
}

controlplane::nodes() {
  if ! controlplane::nodes_ready; then
    # Nodes that exist already make create fail; whether all are there is found out below.
    controlplane::write_nodes | admin create -f - >>"${CLUSTER_DIR}/logs/setup.log" 2>&1 || true
    poll 60 controlplane::nodes_ready || fail_with_log setup "the ${CLUSTER_NODES} nodes are not ready"
  fi
  admin apply --server-side --force-conflicts -f - >>"${CLUSTER_DIR}/logs/setup.log" 2>&1 <<'YAML' || fail_with_log setup "the storage class was not applied"
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: simulated
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: jobset-apiserver.io/simulated
YAML
}
