// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
)

// parallel is how many requests a client has under way that does many, as jobset-controller has.
const parallel = 50

const (
	// NamespaceKey is the label of namespaces that benchmarks create.
	NamespaceKey = "jobset-apiserver.io/bench"
	// removalTime is how long a namespace is waited for after an interrupt.
	removalTime = time.Minute
)

// space is the namespace of a run, and what is seen in it.
type space struct {
	*runner
	name string
	// labeled gives bare Jobs the labels and annotations of those of sets.
	labeled bool

	jobs      *tracker[*batchv1.Job]
	sets      *tracker[*jobsetv1alpha2.JobSet]
	sequences *tracker[*batchv1alpha1.SequentialJob]
}

// watched is what this program watches in a namespace. What is compared must be watched in the same way.
type watched int

const (
	unwatched watched = iota
	watchedSets
	watchedAll
	watchedSequences
)

// inSpace does something in a new namespace and removes it, unless it may be kept and that is wanted.
func (r *runner) inSpace(ctx context.Context, watch watched, keep bool, do func(ctx context.Context, s *space) error) error {
	namespaces, err := r.createNamespaces(ctx, 1)
	if len(namespaces) == 0 {
		return err
	}
	s := &space{runner: r, name: namespaces[0]}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err == nil {
		err = s.watch(watching, watch)
	}
	if err == nil {
		err = do(ctx, s)
	}
	stop()
	if keep && r.Keep {
		return err
	}
	return errors.Join(err, r.remove(ctx, s.name))
}

// createNamespaces returns the names of the namespaces that were created, also if some could not be.
func (r *runner) createNamespaces(ctx context.Context, n int) ([]string, error) {
	var mu sync.Mutex
	var names []string
	err := all(ctx, n, writers, func(int) error {
		namespace, err := r.Cluster.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-", Labels: map[string]string{NamespaceKey: ""}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a namespace: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		names = append(names, namespace.Name)
		return nil
	})
	return names, err
}

func (s *space) watch(ctx context.Context, watch watched) error {
	kube := informers.NewSharedInformerFactoryWithOptions(s.Cluster.Kube, 0, informers.WithNamespace(s.name))
	sets := externalversions.NewSharedInformerFactoryWithOptions(s.Cluster.JobSets, 0, externalversions.WithNamespace(s.name))
	var err error
	if watch >= watchedAll {
		if s.jobs, err = newTracker[*batchv1.Job](ctx, kube.Batch().V1().Jobs().Informer(), s.Timeout); err != nil {
			return fmt.Errorf("watching Jobs: %w", err)
		}
		s.jobs.log = s.Log
	}
	if watch == unwatched {
		return nil
	}
	if s.sets, err = newTracker[*jobsetv1alpha2.JobSet](ctx, sets.Jobset().V1alpha2().JobSets().Informer(), s.Timeout); err != nil {
		return fmt.Errorf("watching JobSets: %w", err)
	}
	s.sets.log = s.Log
	if watch < watchedSequences {
		return nil
	}
	if s.sequences, err = newTracker[*batchv1alpha1.SequentialJob](ctx, sets.Batch().V1alpha1().SequentialJobs().Informer(), s.Timeout); err != nil {
		return fmt.Errorf("watching SequentialJobs: %w", err)
	}
	return nil
}

// remove deletes namespaces and waits until they are gone, so that they do not disturb what comes next. After an
// interrupt they are deleted too.
func (r *runner) remove(ctx context.Context, names ...string) error {
	timeout := r.Timeout
	if ctx.Err() != nil {
		timeout = min(timeout, removalTime)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	namespaces := r.Cluster.Kube.CoreV1().Namespaces()
	if err := all(ctx, len(names), writers, func(i int) error {
		if err := namespaces.Delete(ctx, names[i], metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting namespace %s: %w", names[i], err)
		}
		return nil
	}); err != nil {
		return err
	}
	said := time.Now()
	for i, name := range names {
		err := wait.PollUntilContextCancel(ctx, pollInterval, len(names) > 1, func(ctx context.Context) (bool, error) {
			if time.Since(said) >= sayEvery {
				r.Log("waiting until namespaces are gone: %d of %d are, and the next one is %s", i, len(names), name)
				said = time.Now()
			}
			_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("waiting until namespace %s is gone: %w", name, err)
		}
	}
	return nil
}

// all makes n calls, so many at a time, and returns the errors of all.
func all(ctx context.Context, n, atATime int, call func(i int) error) error {
	failures := make([]error, n)
	workqueue.ParallelizeUntil(ctx, atATime, n, func(i int) { failures[i] = call(i) })
	return errors.Join(append(failures, ctx.Err())...)
}
