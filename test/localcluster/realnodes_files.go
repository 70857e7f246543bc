// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
)

// dnsConfiguration takes the address of this machine, the port of the health check, and the kubeconfig.
const dnsConfiguration = `.:53 {
  bind %s
  errors
  ready 127.0.0.1:%s
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %s
    ttl 5
  }
  cache 5
}
`

// containerdConfiguration takes the directory of the node twice, the socket, the image of the process that holds a
// pod's namespaces, and the directories of the configuration of the network and of registries. Everything that is mounted is mounted below the
// directory of the node, where it is found when the node goes.
const containerdConfiguration = `version = 2
root = "%s/containerd"
state = "%s/state"
[grpc]
  address = "%s"
[plugins."io.containerd.grpc.v1.cri"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  sandbox_image = "%s"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%s"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "%s"
`

// podNetwork takes the addresses of the pods of the node, and the directory in which they are counted.
const podNetwork = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local", "subnet": "%s", "dataDir": "%s", "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`

// kubeletConfiguration takes the socket of containerd, the directory of logs, the address of the DNS server, the
// address of the node, and the file of the authority for clients. It gets by without systemd and with version 1 of
// control groups, and takes nothing from pods when the disk is full: other programs fill that too.
const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
containerRuntimeEndpoint: unix://%s
podLogsDir: %s
clusterDNS: ["%s"]
clusterDomain: cluster.local
resolvConf: /dev/null
address: %s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: "%s"}
authorization: {mode: Webhook}
`

// proxyConfiguration takes the kubeconfig, the range of the pods, and the name of the node. It does not change the machine's limits on
// connections.
const proxyConfiguration = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: "%s"}
clusterCIDR: %s
hostnameOverride: %s
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
metricsBindAddress: 127.0.0.1:10249
`

// writeConfiguration writes the files of a node.
func (n *realNode) writeConfiguration() error {
	for _, dir := range []string{"cni", "pki", "state"} {
		if err := os.MkdirAll(n.file(dir), 0o755); err != nil {
			return err
		}
	}
	server := "https://" + n.network.host() + ":" + n.apiPort
	return errors.Join(
		writeFile(n.file("containerd.toml"), fmt.Sprintf(containerdConfiguration, n.file(), n.file(), n.socket(), ProgramImage, n.file("cni"),
			n.file(registriesDir))),
		writeFile(n.file("cni", "10-pods.conflist"), fmt.Sprintf(podNetwork, n.network.pods(n.number), n.file("addresses"))),
		writeFile(n.file("kubelet.yaml"), fmt.Sprintf(kubeletConfiguration,
			n.socket(), n.file("pods"), n.network.host(), n.network.nodeAddress(n.number), n.kwokPath("pki", "ca.crt"))),
		writeChanged(n.file("kube-proxy.yaml"), fmt.Sprintf(proxyConfiguration, n.file("kube-proxy.kubeconfig"), n.network.allPods(), n.name)),
		n.writeIdentity(n.file("kubelet.kubeconfig"), server, "system:node:"+n.name, "system:nodes"),
		n.writeIdentity(n.file("kube-proxy.kubeconfig"), server, "system:kube-proxy", ""),
	)
}

// writeChanged writes a file unless it has that content: kube-proxy ends when its configuration is written, whatever is in it.
func writeChanged(path, content string) error {
	if present, err := os.ReadFile(path); err == nil && string(present) == content {
		return nil
	}
	return writeFile(path, content)
}
