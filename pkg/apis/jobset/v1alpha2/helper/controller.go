// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import "strings"

const (
	// ControllerLease is the name of the lease that a controller of JobSets holds while it works. It is that of upstream's
	// controller, so that both never work at the same time.
	ControllerLease = "6d4f6a47.jobset.x-k8s.io"
	// ControllerNamespace is where the manifests put the controller and its lease.
	ControllerNamespace = "jobset-system"
)

// ControllerIdentity is the holder of the lease of a controller: the process, and its version.
func ControllerIdentity(host, unique, version string) string {
	return strings.Join([]string{host, unique, version}, "_")
}

// ControllerVersion returns the version of the controller that holds the lease with this identity; "" if it has none.
func ControllerVersion(identity string) string {
	parts := strings.SplitN(identity, "_", 3) // names of hosts have no _
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}
