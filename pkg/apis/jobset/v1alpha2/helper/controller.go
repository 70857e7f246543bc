// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"strconv"
	"strings"
)

const (
	// ControllerLease is the name of the lease that a controller of JobSets holds while it works. Upstream's
	// controller uses the same name, so that both never work at the same time.
	ControllerLease = "6d4f6a47.jobset.x-k8s.io"
	// ControllerNamespace is where the manifests put the controller and its lease.
	ControllerNamespace = "jobset-system"
	// controllerGatePrefix is the prefix of the labels of the lease that are the feature gates of its holder.
	controllerGatePrefix = "feature-gates.jobset-apiserver.io/"
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

// ControllerGateLabels returns the labels of the lease by which a controller publishes the states of its feature gates.
func ControllerGateLabels(states map[string]bool) map[string]string {
	labels := map[string]string{}
	for name, on := range states {
		labels[controllerGatePrefix+name] = strconv.FormatBool(on)
	}
	return labels
}

// ControllerGates returns the states of the feature gates of the controller that holds a lease with these labels. It is empty if the
// controller does not publish them.
func ControllerGates(labels map[string]string) map[string]bool {
	states := map[string]bool{}
	for label, value := range labels {
		name, is := strings.CutPrefix(label, controllerGatePrefix)
		if on, err := strconv.ParseBool(value); is && err == nil {
			states[name] = on
		}
	}
	return states
}
