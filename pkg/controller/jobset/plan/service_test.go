// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

func TestHeadlessService(t *testing.T) {
	service := func(name string, publish bool) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", OwnerReferences: ownedByJS},
			Spec: corev1.ServiceSpec{
				ClusterIP: "None", PublishNotReadyAddresses: publish, Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"},
			},
		}
	}
	for name, tc := range map[string]struct {
		network *jobsetv1alpha2.Network
		exists  bool
		want    *corev1.Service
	}{
		"it has the name of the set":                                {network: &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}, want: service("js", true)},
		"it has the name of the subdomain":                          {network: &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), Subdomain: "sub"}, want: service("sub", true)},
		"it can publish ready addresses only":                       {network: &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(false)}, want: service("js", false)},
		"one that exists is left as it is":                          {network: &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}, exists: true},
		"a set that wants no host names gets none":                  {network: &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(false)}},
		"a set without a network, stored by other means, gets none": {},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 1))
			js.Spec.Network = tc.network
			o := observe(js)
			o.ServiceExists = tc.exists
			diff(t, "service", tc.want, Decide(o).CreateService)
			if tc.want != nil {
				diff(t, "name", tc.want.Name, helper.ServiceName(js))
			}
		})
	}
}

// TestServiceOfOwnEndpoints creates the Service so that the controllers of the cluster find no pods for it.
func TestServiceOfOwnEndpoints(t *testing.T) {
	o := observe(newSet(with("w", 1)))
	o.ServiceExists, o.OwnEndpoints = false, true
	want := map[string]string{"jobset.sigs.k8s.io/jobset-name": "js", "jobset-apiserver.io/endpoints": "controller"}
	diff(t, "selector", want, Decide(o).CreateService.Spec.Selector)
}

func TestPortsOfTheService(t *testing.T) {
	ports := func(ports ...corev1.ContainerPort) corev1.Container { return corev1.Container{Ports: ports} }
	containers := func(containers ...corev1.Container) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Spec.Template.Spec.Containers = containers }
	}
	port := func(name string, protocol corev1.Protocol, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: number, TargetPort: intstr.FromInt32(number)}
	}
	for name, tc := range map[string]struct {
		jobs []func(*jobsetv1alpha2.JobSet)
		want []corev1.ServicePort
	}{
		"containers without ports": {jobs: []func(*jobsetv1alpha2.JobSet){with("a", 1)}},
		"ports of several containers and replicatedJobs, each once": {
			jobs: []func(*jobsetv1alpha2.JobSet){
				with("a", 1, containers(ports(corev1.ContainerPort{Name: "web", ContainerPort: 80}), ports(corev1.ContainerPort{ContainerPort: 53, Protocol: "UDP"}))),
				with("b", 2, containers(ports(corev1.ContainerPort{ContainerPort: 80, Protocol: "TCP"}, corev1.ContainerPort{ContainerPort: 53}))),
			},
			want: []corev1.ServicePort{port("tcp-80", "TCP", 80), port("udp-53", "UDP", 53), port("tcp-53", "TCP", 53)},
		},
		"a port without a number, and those of init containers, do not count": {
			jobs: []func(*jobsetv1alpha2.JobSet){with("a", 1, containers(ports(corev1.ContainerPort{Name: "none"})), func(rj *jobsetv1alpha2.ReplicatedJob) {
				rj.Template.Spec.Template.Spec.InitContainers = []corev1.Container{ports(corev1.ContainerPort{ContainerPort: 1})}
			})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(tc.jobs...))
			o.ServiceExists = false
			diff(t, "ports", tc.want, Decide(o).CreateService.Spec.Ports)
		})
	}
}
