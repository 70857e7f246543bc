// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// createService creates the headless Service.
func createService(s state) changes {
	return changes{plan: Plan{CreateService: missingService(s.Observed)}}
}

// missingService returns the headless Service unless one of its name exists, whoever owns it (docs/reference/jobset.md#headless-service).
func missingService(o Observed) *corev1.Service {
	js := o.JobSet
	name := helper.ServiceName(js)
	if o.ServiceExists || name == "" {
		return nil
	}
	selector := map[string]string{jobsetv1alpha2.JobSetNameKey: js.Name}
	if o.OwnEndpoints {
		selector[jobsetv1alpha2.EndpointsKey] = jobsetv1alpha2.ServiceEndpointsController
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: js.Namespace, OwnerReferences: []metav1.OwnerReference{ownerReference(js)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 selector,
			PublishNotReadyAddresses: ptr.Deref(js.Spec.Network.PublishNotReadyAddresses, true),
			Ports:                    servicePorts(js),
		},
	}
}

// servicePorts returns one port for each that containers name, in the order of the spec. Init containers do not count.
func servicePorts(js *jobsetv1alpha2.JobSet) []corev1.ServicePort {
	var ports []corev1.ServicePort
	known := sets.New[string]()
	for i := range js.Spec.ReplicatedJobs {
		for _, container := range js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers {
			for _, port := range container.Ports {
				protocol := port.Protocol
				if protocol == "" {
					protocol = corev1.ProtocolTCP
				}
				name := fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), port.ContainerPort)
				if port.ContainerPort == 0 || known.Has(name) {
					continue
				}
				known.Insert(name)
				ports = append(ports, corev1.ServicePort{
					Name: name, Protocol: protocol, Port: port.ContainerPort, TargetPort: intstr.FromInt32(port.ContainerPort),
				})
			}
		}
	}
	return ports
}

func ownerReference(js *jobsetv1alpha2.JobSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))
}
