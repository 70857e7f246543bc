// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	endpointslices "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// view is what is watched while a set needs it.
type view struct {
	pods, services, nodes Cache
	paces                 *paces
}

// declareView declares what is watched while a set needs it.
func (c *Syncer) declareView(kind *informers.Kind, declare func(informers.Need) Cache) *view {
	v := &view{paces: newPaces()}
	v.pods = declare(informers.Need{
		Resource: kind.Pods(), Label: jobsetv1alpha2.JobSetNameKey, Transform: informers.Transformed(newPod),
		Indexers: cache.Indexers{indexSet: setOf},
	})
	v.services = declare(informers.Need{Resource: kind.Services(), Transform: transformService}) // the Service of a set carries no label
	v.nodes = declare(informers.Need{Resource: kind.Nodes(), Transform: transformNode, Optional: true})
	v.pods.AddEventHandler(c.onPods(v))
	v.services.AddEventHandler(c.onServices(v))
	return v
}

// service returns the cached Service if it is headless, else nil.
func (v *view) service(namespace, name string) *corev1.Service {
	obj, err := v.services.GetByKey(cache.NewObjectName(namespace, name).String())
	s, ok := obj.(*service)
	if err != nil || !ok {
		return nil
	}
	return s.headless
}

// podsOf returns those pods of a set whose addresses are listed in the slices of its Service.
func (v *view) podsOf(key cache.ObjectName, service string) (pods []endpointslices.Pod) {
	objs, err := v.pods.ByIndex(indexSet, key.String())
	if err != nil {
		return nil // the index exists
	}
	for _, obj := range objs {
		if p, ok := obj.(*pod); ok && p.listed() {
			pods = append(pods, p.endpoint(service, v.zone))
		}
	}
	return pods
}

// zone returns the zone of a node; empty if it is not known.
func (v *view) zone(node string) string {
	if node == "" || !v.nodes.HasSynced() {
		return ""
	}
	obj, err := v.nodes.GetByKey(node)
	n, ok := obj.(*corev1.Node)
	if err != nil || !ok {
		return ""
	}
	return n.Labels[corev1.LabelTopologyZone]
}

// transformNode keeps the zone of a node.
func transformNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		kept := &corev1.Node{}
		kept.Name, kept.ResourceVersion = node.Name, node.ResourceVersion
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			kept.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		}
		return kept, nil
	}
	return obj, nil
}

// viewedServices is how far the cache of Services has come, while there is one.
type viewedServices struct{ *Syncer }

// LastStoreSyncResourceVersion returns the version that the cache has come to; empty without a cache.
func (s viewedServices) LastStoreSyncResourceVersion() string {
	if view := s.demand.Current(); view != nil {
		return view.services.LastStoreSyncResourceVersion()
	}
	return ""
}
