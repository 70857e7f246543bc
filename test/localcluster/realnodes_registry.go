// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// registriesDir is the directory of a node in which containerd looks, at each pull, how to reach a registry.
const registriesDir = "registries"

// plainRegistry takes the host of a registry with its port, twice.
const plainRegistry = `server = "http://%s"

[host."http://%s"]
  capabilities = ["pull", "resolve"]
`

// PullPlain lets a real node pull images from a registry that serves HTTP without TLS.
func (c *Cluster) PullPlain(node, host string) error {
	dir := filepath.Join(c.Dir, node, registriesDir, host)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "hosts.toml"), fmt.Sprintf(plainRegistry, host, host))
}

// RouterOf returns the address of this machine in the network of a real node.
func RouterOf(ctx context.Context, core kubernetes.Interface, name string) (string, error) {
	node, err := core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeInternalIP {
			continue
		}
		of, err := netip.ParseAddr(address.Address)
		return of.Prev().String(), err
	}
	return "", fmt.Errorf("%s has no internal address", name)
}
