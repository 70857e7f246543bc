// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// mostRealNodes is how many real nodes a cluster can have. Each costs about 150 MiB of memory.
const mostRealNodes = 4

// realNode is a kubelet with a containerd of its own in a network namespace of its own. Its containers are real.
type realNode struct {
	*supervisor
	// number counts from 1.
	number int
	name   string
}

func (c *supervisor) realNodeList() []*realNode {
	var nodes []*realNode
	for number := 1; number <= c.realNodes; number++ {
		nodes = append(nodes, &realNode{c, number, fmt.Sprintf("real-%d", number)})
	}
	return nodes
}

func (n *realNode) file(elements ...string) string {
	return n.path(append([]string{n.name}, elements...)...)
}

// socket is the socket of containerd.
func (n *realNode) socket() string { return n.file("state", "containerd.sock") }

// upRealNodes starts what does not run of the real nodes, and waits until they are ready.
func (c *supervisor) upRealNodes(ctx context.Context) error {
	if c.realNodes == 0 {
		return nil
	}
	if err := c.network.reserve(); err != nil {
		return err
	}
	image, err := c.programImage()
	if err != nil {
		return err
	}
	if err := errors.Join(c.upDNS(ctx), c.upVolumes(ctx)); err != nil {
		return err
	}
	for _, n := range c.realNodeList() {
		if err := n.up(ctx, image); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	for _, n := range c.realNodeList() {
		if err := c.await(ctx, n.name+"-kubelet", n.name+" is not ready", n.ready); err != nil {
			return err
		}
	}
	return nil
}

// inNetwork returns the command line that runs a program in the network of the node. The file system stays that of this
// machine: unlike "ip netns exec", nsenter does not mount /sys, below which kubelet and runc look for the control
// groups.
func (n *realNode) inNetwork(command ...string) []string {
	return append([]string{"nsenter", "--net=" + n.network.namespaceFile(n.number)}, command...)
}

func (n *realNode) up(ctx context.Context, image string) error {
	if err := errors.Join(n.network.up(n.number), n.writeConfiguration()); err != nil {
		return err
	}
	for _, p := range []struct {
		name    string
		command []string
		ready   func(context.Context) error
	}{
		{"containerd", []string{"containerd", "--config", n.file("containerd.toml")}, n.answers},
		{"kubelet", []string{
			filepath.Join(n.nodeBinaries, "kubelet"), "--config=" + n.file("kubelet.yaml"), "--kubeconfig=" + n.file("kubelet.kubeconfig"), "--root-dir=" + n.file("kubelet"),
			"--cert-dir=" + n.file("pki"), "--hostname-override=" + n.name, "--node-ip=" + n.network.nodeAddress(n.number),
			"--node-labels=" + corev1.LabelTopologyZone + "=" + n.name,
		}, nil},
		{"kube-proxy", []string{filepath.Join(n.nodeBinaries, "kube-proxy"), "--config=" + n.file("kube-proxy.yaml")}, nil},
	} {
		name := n.name + "-" + p.name
		if _, runs := n.pid(name); !runs {
			say("starting " + name)
			if err := n.start(name, n.inNetwork(p.command...)...); err != nil {
				return err
			}
		}
		if p.ready == nil {
			continue
		}
		if err := n.await(ctx, name, name+" does not answer", p.ready); err != nil {
			return err
		}
		if err := n.importImage(image); err != nil {
			return err
		}
	}
	return nil
}

// answers says whether containerd takes connections.
func (n *realNode) answers(ctx context.Context) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", n.socket())
	if err != nil {
		return err
	}
	return connection.Close()
}

func (n *realNode) ready(ctx context.Context) error {
	var node corev1.Node
	if err := n.admin.get(ctx, "/api/v1/nodes/"+n.name, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("kubelet has not reported yet")
}

// importImage makes the images of an archive known to the node.
func (n *realNode) importImage(archive string) error {
	return n.logged("images", func(log *os.File) error {
		cmd := exec.Command("ctr", "--address", n.socket(), "--namespace", "k8s.io", "images", "import", archive)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return n.failure("images", fmt.Errorf("%s was not imported: %w", archive, err))
		}
		return nil
	})
}

// upDNS starts the DNS server of the cluster. It runs on this machine, where the pods reach it under the address of the network.
func (c *supervisor) upDNS(ctx context.Context) error {
	port, err := FreePorts(1)
	if err != nil {
		return err
	}
	const name = "coredns"
	if _, runs := c.pid(name); runs {
		return nil
	}
	say("starting " + name)
	config := fmt.Sprintf(dnsConfiguration, c.network.host(), port[0], c.kubeconfig())
	if err := writeFile(c.path("Corefile"), config); err != nil {
		return err
	}
	if err := c.start(name, filepath.Join(c.nodeBinaries, "coredns"), "-conf", c.path("Corefile")); err != nil {
		return err
	}
	return c.await(ctx, name, "the DNS server is not ready", func(ctx context.Context) error { return healthy(ctx, port[0], "/ready") })
}

// findNodeBinaries finds the programs of real nodes, which need the rights of root.
func (c *supervisor) findNodeBinaries() error {
	if c.realNodes == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("CLUSTER_REAL_NODES: real nodes need root, for namespaces, mounts and control groups")
	}
	cmd := exec.Command(filepath.Join(c.root, "hack", "ensure-node-binaries.sh"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	c.nodeBinaries = strings.TrimSpace(string(out))
	return err
}

// downRealNodes removes what real nodes leave on the machine beside files: processes in containers, mounts, control
// groups and networks. It needs none of the programs of a node, and may be repeated.
func (c *supervisor) downRealNodes() error {
	if c.realNodes == 0 {
		return nil
	}
	return errors.Join(c.endContainers(30*time.Second), c.unmount(), c.removeControlGroups(), c.network.down(c.realNodes))
}

// reserveNetwork takes addresses for real nodes, which the control plane is created with.
func (c *supervisor) reserveNetwork() error {
	if c.realNodes == 0 {
		return nil
	}
	return c.network.reserve()
}
