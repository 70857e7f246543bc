// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// network is the network of the real nodes of a cluster. Each node is a network namespace with a link to this machine,
// which routes between them:
//
//	10.99.<16*slot>.1       this machine, on its loopback interface: kube-apiserver and the DNS server
//	10.99.<16*slot+n>.0/24  the link of the node n: .1 is this machine, .2 the node
//	10.98.<16*slot+n>.0/24  the pods of the node n
//	10.97.<16*slot>.0/20    Services
//
// The slot keeps clusters on one machine apart.
type network struct {
	// file has the slot that the cluster took.
	file string
	slot int
}

// networkPrefix begins the names of the namespaces and links of all nodes.
const networkPrefix = "jobset-"

// slots is how many clusters with real nodes a machine can have at the same time.
const slots = 16

func (n *network) base() int           { return 16 * n.slot }
func (n *network) host() string        { return fmt.Sprintf("10.99.%d.1", n.base()) }
func (n *network) services() string    { return fmt.Sprintf("10.97.%d.0/20", n.base()) }
func (n *network) kubernetes() string  { return fmt.Sprintf("10.97.%d.1", n.base()) }
func (n *network) allPods() string     { return fmt.Sprintf("10.98.%d.0/20", n.base()) }
func (n *network) pods(i int) string   { return fmt.Sprintf("10.98.%d.0/24", n.base()+i) }
func (n *network) router(i int) string { return fmt.Sprintf("10.99.%d.1", n.base()+i) }

func (n *network) nodeAddress(i int) string   { return fmt.Sprintf("10.99.%d.2", n.base()+i) }
func (n *network) namespace(i int) string     { return fmt.Sprintf("%s%d-%d", networkPrefix, n.slot, i) }
func (n *network) namespaceFile(i int) string { return filepath.Join("/run/netns", n.namespace(i)) }

// forwarding is the setting by which this machine routes.
const forwarding = "/proc/sys/net/ipv4/ip_forward"

// reserve takes a slot, unless the cluster has one. The address on the loopback interface is the mark: only one can add it.
func (n *network) reserve() error {
	content, err := os.ReadFile(n.file)
	if err == nil {
		if n.slot, err = strconv.Atoi(strings.TrimSpace(string(content))); err != nil {
			return fmt.Errorf("%s: %w", n.file, err)
		}
		// After the machine was started again, the address is gone.
		_ = run("ip", "address", "replace", n.host()+"/32", "dev", "lo")
		return os.WriteFile(forwarding, []byte("1"), 0)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for n.slot = range slots {
		// The file comes first, so that an address is never without the file by which it is removed.
		if err := writeFile(n.file, strconv.Itoa(n.slot)+"\n"); err != nil {
			return err
		}
		if err = run("ip", "address", "add", n.host()+"/32", "dev", "lo"); err == nil {
			return os.WriteFile(forwarding, []byte("1"), 0)
		}
		if err := os.Remove(n.file); err != nil {
			return err
		}
	}
	return fmt.Errorf("no network is free for real nodes: %w", err)
}

// up makes the namespace of a node and its link, unless they exist.
func (n *network) up(i int) error {
	if exists(n.namespaceFile(i)) {
		return nil
	}
	name, link := n.namespace(i), n.namespace(i)
	return steps(
		[]string{"ip", "netns", "add", name},
		[]string{"ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name},
		[]string{"ip", "address", "add", n.router(i) + "/24", "dev", link},
		[]string{"ip", "link", "set", link, "up"},
		[]string{"ip", "-netns", name, "address", "add", n.nodeAddress(i) + "/24", "dev", "eth0"},
		[]string{"ip", "-netns", name, "link", "set", "eth0", "up"},
		[]string{"ip", "-netns", name, "link", "set", "lo", "up"},
		[]string{"ip", "-netns", name, "route", "add", "default", "via", n.router(i)},
		[]string{"ip", "route", "add", n.pods(i), "via", n.nodeAddress(i)},
		[]string{"nsenter", "--net=" + n.namespaceFile(i), "sh", "-c", "echo 1 >" + forwarding},
	)
}

// down removes everything of the network that is there.
func (n *network) down(nodes int) error {
	content, err := os.ReadFile(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		n.slot, err = strconv.Atoi(strings.TrimSpace(string(content)))
	}
	if err != nil {
		return err
	}
	var errs []error
	for i := 1; i <= nodes; i++ {
		if exists(filepath.Join("/sys/class/net", n.namespace(i))) {
			errs = append(errs, run("ip", "link", "delete", n.namespace(i)))
		}
		if exists(n.namespaceFile(i)) {
			errs = append(errs, run("ip", "netns", "delete", n.namespace(i)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// The address may be gone already. Forwarding stays on: something else on the machine may have begun to rely on it.
	_ = run("ip", "address", "delete", n.host()+"/32", "dev", "lo")
	return os.Remove(n.file)
}

func steps(commands ...[]string) error {
	for _, command := range commands {
		if err := run(command...); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command whose output matters only if it fails.
func run(command ...string) error {
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
