// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

const (
	// requestsPerSecond is the default of the controller's client.
	requestsPerSecond = 500
	// workers is the default number of JobSets that are synced at a time.
	workers = 10
	// perPass is how many children a plan changes at most.
	perPass = 2000
	// between is the time between the creations of two owners with a few children.
	between = 500 * time.Millisecond
	// mayWait is how long owners with many children may delay one with a few.
	mayWait = 2 * time.Second
)

// crowd syncs owners with many children and owners with a few, with a client that limits its rate and an API that answers after 10 ms.
type crowd struct {
	queue     *queue.Queue
	slowStart *SlowStart
	limiter   flowcontrol.RateLimiter
	// children is the number of children of an owner with many.
	children int

	mu sync.Mutex
	// left are the children that owners with many still lack, and began is when owners with a few were created.
	left  map[cache.ObjectName]int
	began map[cache.ObjectName]time.Time
	// slowest is the longest time that an owner with a few children took, and last is when the last request ended.
	slowest time.Duration
	last    time.Time
}

func (c *crowd) request(ctx context.Context, _ int) error {
	if err := c.limiter.Wait(ctx); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	return nil
}

func (c *crowd) sync(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	if strings.HasPrefix(key.Name, "large") {
		return c.syncLarge(ctx, key)
	}
	for _, requests := range []int{1, 4, 1} { // a Service, its Jobs, and the status
		if err := c.slowStart.Do(ctx, key, requests, c.request); err != nil {
			return queue.Due{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, time.Since(c.began[key]))
	delete(c.began, key)
	return queue.Due{}, nil
}

func (c *crowd) syncLarge(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	c.mu.Lock()
	left := c.left[key]
	c.mu.Unlock()
	err := c.slowStart.Do(ctx, key, min(left, perPass), func(ctx context.Context, i int) error {
		err := c.request(ctx, i)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left[key]--
		return err
	})
	return queue.Due{Continue: left > perPass}, err
}

// run returns when all is done, and how long it took.
func (c *crowd) run(t *testing.T, large, small int) time.Duration {
	ctx, cancel := context.WithCancel(t.Context())
	begin := time.Now()
	var running sync.WaitGroup
	running.Go(func() { c.queue.Run(ctx, workers, c.sync) })
	for i := range large {
		key := cache.NewObjectName("default", fmt.Sprint("large-", i))
		c.mu.Lock()
		c.left[key] = c.children
		c.mu.Unlock()
		c.queue.Add(key)
	}
	for i := range small {
		time.Sleep(between)
		key := cache.NewObjectName("default", fmt.Sprint("small-", i))
		c.mu.Lock()
		c.began[key] = time.Now()
		c.mu.Unlock()
		c.queue.Add(key)
	}
	time.Sleep(time.Hour)
	cancel()
	running.Wait()
	return c.last.Sub(begin)
}

// TestOwnersOfManyChildrenDoNotDelayOthers has owners of 10,000 children each, and others with 4 children that come one
// after another. Time is simulated.
func TestOwnersOfManyChildrenDoNotDelayOthers(t *testing.T) {
	const small = 60
	for large, children := range map[int]int{1: 10_000, 3: 10_000, workers: 10_000, 5 * workers: 2000} {
		t.Run(fmt.Sprint(large), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &crowd{
					queue: queue.New(fmt.Sprint("crowd-", large)), slowStart: NewSlowStart(50), children: children,
					limiter: flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestsPerSecond),
					left:    map[cache.ObjectName]int{}, began: map[cache.ObjectName]time.Time{},
				}
				took := c.run(t, large, small)
				t.Logf("the slowest of %d with 4 children took %v; all took %v", small, c.slowest, took)
				if c.slowest > mayWait {
					t.Errorf("an owner with 4 children took %v, more than %v", c.slowest, mayWait)
				}
				for key, left := range c.left {
					if left != 0 {
						t.Errorf("%s lacks %d children", key, left)
					}
				}
				if len(c.began) > 0 {
					t.Errorf("%d owners with 4 children are not done", len(c.began))
				}
				// The limit of the client is used.
				least := max(time.Duration(large*children)*time.Second/requestsPerSecond, small*between)
				if took > least*11/10 {
					t.Errorf("all took %v, more than 1.1 times the %v that are possible", took, least)
				}
			})
		})
	}
}
