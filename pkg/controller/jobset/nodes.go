// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

const (
	// nodesKept is how long a number of nodes is used. It needs not be exact.
	nodesKept = time.Minute
	// nodesTimeout is how long a restart waits for it.
	nodesTimeout = 2 * time.Second
)

// nodeCounter counts the nodes of the cluster. It watches nothing: the API says how many nodes follow when it is asked for one of them.
type nodeCounter struct{ kube kubernetes.Interface }

// newNodeCounter returns about how many nodes the cluster has; 0 if that is not known.
func newNodeCounter(kube kubernetes.Interface, clock clock.PassiveClock) *informers.Answer[int] {
	return informers.NewAnswer(clock, nodeCounter{kube}.count, func(int) time.Duration { return nodesKept })
}

func (c nodeCounter) count(ctx context.Context) (nodes int) {
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	list, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Could not count the nodes. A set keeps off one node at most until it is possible", "retryAfter",
			nodesKept)
	case list.Continue == "" || list.RemainingItemCount != nil:
		nodes = len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0))
	}
	return nodes
}
