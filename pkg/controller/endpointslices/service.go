// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// service is what the cache keeps of a Service.
type service struct {
	namespace, name string
	version         uint64
	// headless is what counts of a headless Service; nil for any other.
	headless *corev1.Service
}

var _ metav1.ObjectMetaAccessor = &service{}

// GetObjectMeta returns what the cache needs to know of an object.
func (s *service) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.namespace, Name: s.name, ResourceVersion: strconv.FormatUint(s.version, 10)}
}

func transformService(obj any) (any, error) {
	from, ok := obj.(*corev1.Service)
	if !ok {
		return obj, nil
	}
	s := &service{namespace: from.Namespace, name: from.Name}
	s.version, _ = strconv.ParseUint(from.ResourceVersion, 10, 64) // a version that is not well-formed counts as absent
	if from.Spec.ClusterIP == corev1.ClusterIPNone {
		s.headless = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: from.Namespace, Name: from.Name, UID: from.UID, ResourceVersion: from.ResourceVersion, OwnerReferences: from.OwnerReferences,
			},
			Spec: corev1.ServiceSpec{
				ClusterIP: from.Spec.ClusterIP, Selector: from.Spec.Selector, Ports: from.Spec.Ports, IPFamilies: from.Spec.IPFamilies,
				PublishNotReadyAddresses: from.Spec.PublishNotReadyAddresses,
			},
		}
	}
	return s, nil
}

// ownedBySet reports that the garbage collector deletes the Service with a JobSet.
func ownedBySet(svc *corev1.Service) bool {
	return informers.OwnerOf(svc, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet")) != nil
}

// setOfService returns the set that a Service belongs to, or whose pods it selects.
func setOfService(s *service) (cache.ObjectName, bool) {
	if s.headless == nil {
		return cache.ObjectName{}, false
	}
	if ownedBySet(s.headless) {
		return cache.NewObjectName(s.namespace, metav1.GetControllerOfNoCopy(s.headless).Name), true
	}
	name := s.headless.Spec.Selector[jobsetv1alpha2.JobSetNameKey]
	return cache.NewObjectName(s.namespace, name), name != ""
}

// switched reports that the controllers of the cluster find no pods for the Service.
func switched(s *corev1.Service) bool {
	return s.Spec.Selector[jobsetv1alpha2.EndpointsKey] == jobsetv1alpha2.ServiceEndpointsController
}

// isSwitched is what makes only taken Services known all the time.
func isSwitched(obj runtime.Object) bool {
	svc, ok := obj.(*corev1.Service)
	return ok && svc.Spec.ClusterIP == corev1.ClusterIPNone && switched(svc)
}

// takenOf indexes a taken Service by its set.
func takenOf(obj any) ([]string, error) {
	if s, ok := obj.(*service); ok {
		if key, ok := setOfService(s); ok {
			return []string{key.String()}, nil
		}
	}
	return nil, nil
}

// transformSlice drops what no decision uses. Everything else is written back.
func transformSlice(obj any) (any, error) {
	if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
		slice.ManagedFields = nil
	}
	return obj, nil
}

// setOfSlice indexes our slices by their set. The cluster copies labels of Services to slices of its own.
func setOfSlice(obj any) ([]string, error) {
	if key, ok := ownerOfSlice(obj); ok {
		return []string{key.String()}, nil
	}
	return nil, nil
}

func ownerOfSlice(obj any) (cache.ObjectName, bool) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelManagedBy] != endpointslices.ManagedBy || slice.Labels[jobsetv1alpha2.JobSetNameKey] == "" {
		return cache.ObjectName{}, false // the record of the canary belongs to no set
	}
	return cache.NewObjectName(slice.Namespace, slice.Labels[jobsetv1alpha2.JobSetNameKey]), true
}

// serviceNameOf returns the name of the Service that a set has, or had when it asked us.
func (c *Syncer) serviceNameOf(obs *observed) string {
	if obs.set != nil && obs.set.service != "" {
		return obs.set.service
	}
	for _, slice := range obs.managed {
		return slice.Labels[discoveryv1.LabelServiceName]
	}
	for _, name := range c.taken(obs.key) {
		return name
	}
	return ""
}
