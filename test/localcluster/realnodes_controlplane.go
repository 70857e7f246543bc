// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"strings"
)

// kwokOptionsForNodes adds the names in the certificate of kube-apiserver under which real nodes and their pods reach it.
func (c *supervisor) kwokOptionsForNodes(to *strings.Builder) {
	if c.realNodes > 0 {
		fmt.Fprintf(to, "  kubeApiserverCertSANs: [%q, %q, kubernetes.default.svc, kubernetes.default.svc.cluster.local]\n", c.network.host(), c.network.kubernetes())
	}
}

// LocalAPIServerFlags returns flags of a kube-apiserver that only this machine reaches. By default, it advertises the address of the default route,
// and does not start without one. It refuses to advertise a loopback address as the endpoint of the Service kubernetes, which so has no endpoint.
func LocalAPIServerFlags() [][2]string {
	return [][2]string{{"advertise-address", "127.0.0.1"}, {"endpoint-reconciler-type", "none"}}
}

// kubeAPIServerArgumentsForNodes lets real nodes and their pods reach kube-apiserver, and kube-apiserver kubelets and
// the pods behind Services: it runs on this machine, where Services have no addresses.
func (c *supervisor) kubeAPIServerArgumentsForNodes(to *strings.Builder) {
	if c.realNodes == 0 {
		for _, flag := range LocalAPIServerFlags() {
			to.WriteString(extraArgument(flag[0], flag[1], false))
		}
		return
	}
	for _, argument := range []struct {
		flag, value string
		override    bool
	}{
		{"bind-address", "0.0.0.0", true},
		{"advertise-address", c.network.host(), false},
		{"service-cluster-ip-range", c.network.services(), false},
		{"enable-aggregator-routing", "true", false},
		{"kubelet-preferred-address-types", "InternalIP", false},
		{"kubelet-client-certificate", c.kwokPath("pki", "admin.crt"), false},
		{"kubelet-client-key", c.kwokPath("pki", "admin.key"), false},
	} {
		to.WriteString(extraArgument(argument.flag, argument.value, argument.override))
	}
}
