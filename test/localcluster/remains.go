// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"path/filepath"
)

// Remains returns what is left on the machine of a cluster that is down, or of its real nodes: processes, mounts, networks and files.
func (c *Cluster) Remains() ([]string, error) {
	var found []string
	of := &supervisor{settings: settings{dir: c.Dir}, processes: processes{base: c.Dir}}
	for _, pid := range append(of.all(), of.contained()...) {
		found = append(found, fmt.Sprintf("process %d", pid))
	}
	mounts, err := mountsBelow(c.Dir)
	for _, mount := range mounts {
		found = append(found, "mount "+mount)
	}
	if exists(c.Dir) {
		found = append(found, c.Dir)
	}
	return found, err
}

// Networks returns the network namespaces of real nodes of all clusters on the machine, and the links to them.
func Networks() ([]string, error) {
	namespaces, err := filepath.Glob("/run/netns/" + networkPrefix + "*")
	if err != nil {
		return nil, err
	}
	links, err := filepath.Glob("/sys/class/net/" + networkPrefix + "*")
	return append(namespaces, links...), err
}
