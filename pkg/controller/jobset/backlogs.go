// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

const (
	// maxBacklogs is how many Jobs of all sets together may wait for the cluster's Job controller. It takes Jobs in the order of
	// their creation, so a user who creates many large sets would delay everybody else without this bound.
	maxBacklogs = 2 * plan.MaxBacklog
	// minBacklog is how many Jobs of one set may wait even then. A set with no more Jobs than that never waits for other sets.
	minBacklog = 10
)

// backlogs are how many Jobs of each set wait for the Job controller, as of the last decision about the set. A set whose Jobs
// wait is decided about again as soon as that controller takes care of one of them.
type backlogs struct {
	mu    sync.Mutex
	sets  map[cache.ObjectName]int
	total int
}

func newBacklogs() *backlogs { return &backlogs{sets: map[cache.ObjectName]int{}} }

// reserve returns how many Jobs of a set may wait, and counts them until the decision is known. Other sets may be decided about
// at the same time.
func (b *backlogs) reserve(key cache.ObjectName, js *jobsetv1alpha2.JobSet) int {
	jobs := 0
	for i := range js.Spec.ReplicatedJobs {
		jobs += int(helper.Replicas(&js.Spec.ReplicatedJobs[i]))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := min(plan.MaxBacklog, max(minBacklog, maxBacklogs-(b.total-b.sets[key])))
	b.set(key, min(limit, jobs))
	return limit
}

// note replaces what is known about a set.
func (b *backlogs) note(key cache.ObjectName, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(key, waiting)
}

func (b *backlogs) set(key cache.ObjectName, waiting int) {
	b.total += waiting - b.sets[key]
	if b.sets[key] = waiting; waiting == 0 {
		delete(b.sets, key)
	}
}
