// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// nodes are the labels of nodes, which only sets with exclusive placement need: they are watched from the first question on.
type nodes struct {
	watch *informers.OnDemand[informers.Informer]
	// changed is called when the labels of nodes have changed.
	changed func()
}

func newNodes(kube kubernetes.Interface) *nodes {
	n := &nodes{changed: func() {}}
	n.watch = (&informers.OnDemand[informers.Informer]{
		Name: "nodes", Kube: kube, Declare: n.declare, Filled: func() { n.changed() },
	}).Prepare()
	return n
}

// domain returns the value of a label of a node. It is not known while nodes are not, or the node has no such label.
func (n *nodes) domain(node, label string) (domain string, known bool) {
	informer := n.watch.View()
	if informer == nil {
		return "", false
	}
	if obj, err := informer.GetByKey(node); err == nil {
		if w, ok := obj.(*watchedNode); ok {
			domain, known = w.labels[label]
		}
	}
	return domain, known
}

// Run watches nodes, once a caller has asked for them, until the context ends.
func (n *nodes) Run(ctx context.Context) { n.watch.Run(ctx) }

func (n *nodes) declare(kind *informers.Kind) *informers.Informer {
	informer := kind.Informer(informers.Need{Resource: kind.Nodes(), Transform: informers.Transformed(newWatchedNode)})
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { n.shown() },
		UpdateFunc: func(before, after any) {
			was, ok := before.(*watchedNode)
			if is, both := after.(*watchedNode); !ok || !both || !maps.Equal(was.labels, is.labels) {
				n.shown()
			}
		},
	})
	return informer
}

// shown is for changes once the cache is filled. What was there before is of no interest.
func (n *nodes) shown() {
	if n.watch.Current() != nil {
		n.changed()
	}
}

func newWatchedNode(node *corev1.Node) *watchedNode {
	return &watchedNode{watched: newWatched(node), labels: node.Labels}
}
