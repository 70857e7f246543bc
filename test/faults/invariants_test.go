// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// invariants records every Job that is created in a namespace. It watches the main API directly, because a cache may skip
// events.
type invariants struct {
	namespace string

	mu sync.Mutex
	// created are the Jobs by set, attempt and name.
	created map[attempt]map[string]sets.Set[types.UID]
	// broken is the error that ended the watch, if any.
	broken error
}

// attempt is one attempt of one set.
type attempt struct {
	set    types.UID
	number string
}

func newInvariants(t *testing.T, namespace string) *invariants {
	t.Helper()
	i := &invariants{namespace: namespace, created: map[attempt]map[string]sets.Set[types.UID]{}}
	ctx, stop := context.WithCancel(context.Background())
	jobs, err := shared.Kube.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, jobs.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return shared.Kube.BatchV1().Jobs(namespace).Watch(ctx, options)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for event := range watcher.ResultChan() {
			i.record(event)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-over
	})
	return i
}

func (i *invariants) record(event watch.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	job, isJob := event.Object.(*batchv1.Job)
	switch {
	case event.Type == watch.Error || !isJob:
		i.broken = fmt.Errorf("watching Jobs: %v", event.Object)
	case event.Type == watch.Added:
		of := attempt{types.UID(job.Labels[jobsetv1alpha2.JobSetUIDKey]), job.Labels[jobsetv1alpha2.RestartsKey]}
		if i.created[of] == nil {
			i.created[of] = map[string]sets.Set[types.UID]{}
		}
		if i.created[of][job.Name] == nil {
			i.created[of][job.Name] = sets.New[types.UID]()
		}
		i.created[of][job.Name].Insert(job.UID)
	}
}

// violations lists what is wrong with the Jobs that were created for a set: each Job must have been created exactly once in
// each attempt up to the given one.
func (i *invariants) violations(set types.UID, jobs int, attempts int32) (problems []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken != nil {
		return []string{i.broken.Error()}
	}
	expected := sets.New[string]()
	for number := range attempts + 1 {
		expected.Insert(fmt.Sprint(number))
		if seen := len(i.created[attempt{set, fmt.Sprint(number)}]); seen != jobs {
			problems = append(problems, fmt.Sprintf("attempt %d: %d Jobs were created, must be %d", number, seen, jobs))
		}
	}
	for of, created := range i.created {
		if of.set != set {
			continue
		}
		if !expected.Has(of.number) {
			problems = append(problems, fmt.Sprintf("attempt %q: Jobs were created for it, the last attempt must be %d", of.number, attempts))
		}
		for name, uids := range created {
			if len(uids) != 1 {
				problems = append(problems, fmt.Sprintf("attempt %s: job %s was created %d times: %v", of.number, name, len(uids), sets.List(uids)))
			}
		}
	}
	return problems
}
