// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
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

// ForgetImages removes the images of a registry from a real node, so that it pulls them again. No container may use them.
func (c *Cluster) ForgetImages(node, prefix string) error {
	images := []string{"--address", filepath.Join(c.Dir, node, "state", "containerd.sock"), "--namespace", "k8s.io", "images"}
	list, err := exec.Command("ctr", append(images, "list")...).Output()
	if err != nil {
		return fmt.Errorf("listing the images of %s: %w", node, err)
	}
	if unwanted := namesOfImages(string(list), prefix); len(unwanted) > 0 {
		if out, err := exec.Command("ctr", append(append(images, "remove", "--sync"), unwanted...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("removing images from %s: %w: %s", node, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// namesOfImages returns all names of the images, in a list of ctr, that have a name with the prefix: containerd gives each a further name, its ID.
func namesOfImages(list, prefix string) []string {
	digests := map[string]string{}
	for line := range strings.Lines(list) {
		if columns := strings.Fields(line); len(columns) > 2 {
			digests[columns[0]] = columns[2]
		}
	}
	unwanted := sets.New[string]()
	for name, digest := range digests {
		if strings.HasPrefix(name, prefix) {
			unwanted.Insert(digest)
		}
	}
	maps.DeleteFunc(digests, func(_, digest string) bool { return !unwanted.Has(digest) })
	return slices.Sorted(maps.Keys(digests))
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
