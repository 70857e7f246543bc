// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// nodesKept is how long a number of nodes is used. It needs not be exact.
	nodesKept = time.Minute
	// nodesTimeout is how long a restart waits for it.
	nodesTimeout = 2 * time.Second
)

// nodeCounter counts the nodes of the cluster. It watches nothing: the API says how many nodes follow when it is asked for one of them.
type nodeCounter struct {
	kube  kubernetes.Interface
	clock clock.PassiveClock

	// mu is never held during a request.
	mu    sync.Mutex
	nodes int
	asked time.Time
	// answered is closed when the request under way has ended; nil if there is none.
	answered chan struct{}
}

func newNodeCounter(kube kubernetes.Interface, clock clock.PassiveClock) *nodeCounter {
	return &nodeCounter{kube: kube, clock: clock}
}

// count returns about how many nodes the cluster has; 0 if that is not known. One caller at a time asks the API. Others meanwhile get the
// number before, and wait for the answer only if there is none.
func (c *nodeCounter) count(ctx context.Context) int {
	c.mu.Lock()
	now := c.clock.Now()
	pending, nodes := c.answered, c.nodes
	due := pending == nil && (c.asked.IsZero() || now.Sub(c.asked) >= nodesKept)
	if due {
		c.asked, c.answered = now, make(chan struct{})
	}
	c.mu.Unlock()
	switch {
	case due:
		return c.ask(ctx)
	case pending == nil || nodes > 0:
		return nodes
	}
	select {
	case <-pending:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes
}

// ask asks the API, and lets those go on that wait for the answer.
func (c *nodeCounter) ask(ctx context.Context) (nodes int) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.nodes = nodes
		close(c.answered)
		c.answered = nil
	}()
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
