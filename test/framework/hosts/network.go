// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"errors"
	"fmt"
	"os"
)

const (
	// link is the name of the link of a host.
	link = "eth0"
	// most is how many hosts have room in a network beside this machine, with a prefix of 29 bits.
	most = 5
)

// Network is a number of hosts that reach each other and this machine.
type Network struct {
	// Gateway is the address of this machine.
	Gateway string
	Hosts   []*Host

	between *namespace
}

// Host is where programs run.
type Host struct {
	Address string

	*namespace
}

// New returns a network with so many hosts. It needs root.
func New(size int) (_ *Network, err error) {
	if size > most {
		return nil, fmt.Errorf("a network has at most %d hosts, not %d", most, size)
	}
	n := &Network{Gateway: address(1)}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.between, err = newNamespace(); err != nil {
		return nil, err
	}
	if err := n.between.run("ip link add switch type bridge", "ip link set switch up"); err != nil {
		return nil, err
	}
	machine := fmt.Sprintf("js-%d", os.Getpid())
	if err := n.connect(machine, "machine", n.Gateway, run); err != nil {
		return nil, err
	}
	for i := range size {
		h := &Host{Address: address(2 + i)}
		if h.namespace, err = newNamespace(); err != nil {
			return nil, err
		}
		n.Hosts = append(n.Hosts, h)
		if err := h.run("ip link set lo up"); err != nil {
			return nil, err
		}
		if err := n.connect(link, fmt.Sprint("host-", i), h.Address, h.run); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// address is one of the addresses of the network of this process. The range 198.18.0.0/15 is for tests of networks (RFC 2544).
func address(number int) string {
	of := os.Getpid()%(1<<14)<<3 + number
	return fmt.Sprintf("198.%d.%d.%d", 18+of>>16, of>>8%256, of%256)
}

// connect makes a link between the switch and what runs the commands.
func (n *Network) connect(name, port, address string, run func(commands ...string) error) error {
	err := run(
		fmt.Sprintf("ip link add %s type veth peer name %s netns %s", name, port, n.between.path()),
		fmt.Sprintf("ip address add %s/29 dev %s", address, name),
		fmt.Sprintf("ip link set %s up", name),
	)
	if err != nil {
		return err
	}
	return n.between.run(fmt.Sprintf("ip link set %s master switch", port), fmt.Sprintf("ip link set %s up", port))
}

// Close gives the network up. It is gone when no program runs on a host.
func (n *Network) Close() {
	for _, h := range n.Hosts {
		h.file.Close()
	}
	if n.between != nil {
		n.between.file.Close()
	}
}

// Do calls a function, and what it starts runs on the host.
func (h *Host) Do(start func() error) error { return h.do(start) }

// Lose loses a share of all packets that come from another host; 1 are all of them.
func (h *Host) Lose(from *Host, share float64) error {
	if share >= 1 {
		return h.run(fmt.Sprintf("iptables -w -A INPUT -s %s -j DROP", from.Address))
	}
	return h.run(fmt.Sprintf("iptables -w -A INPUT -s %s -m statistic --mode random --probability %g -j DROP", from.Address, share))
}

// Heal ends all losses.
func (n *Network) Heal() error {
	var errs []error
	for _, h := range n.Hosts {
		errs = append(errs, h.run("iptables -w -F INPUT"))
	}
	return errors.Join(errs...)
}
