// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetapply "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/applyconfiguration/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
)

const (
	setName = "example"
	manager = "client-go-example"
)

// create uses the typed client. The set is suspended at first, so that the other steps have something to do.
func (e *example) create(ctx context.Context) error {
	set := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName},
		Spec: jobsetv1alpha2.JobSetSpec{
			Suspend: ptr.To(true),
			ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{
				Name: "workers", Replicas: ptr.To[int32](2),
				Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
					Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](0),
					Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers:    []corev1.Container{{Name: "main", Image: "busybox:1.37", Command: []string{"sleep", "10"}}},
					}},
				}},
			}},
		},
	}
	created, err := e.client.JobsetV1alpha2().JobSets(e.namespace).Create(ctx, set, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("created %s with the uid %s\n", created.Name, created.UID)
	return nil
}

// watch keeps all sets of the namespace in a cache, and prints what becomes of them until the step ends. A controller would add keys to
// a workqueue in the handlers, and read from the lister.
func (e *example) watch(ctx context.Context) error {
	factory := externalversions.NewSharedInformerFactoryWithOptions(e.client, 0, externalversions.WithNamespace(e.namespace))
	sets := factory.Jobset().V1alpha2().JobSets()
	_, err := sets.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { printSet("informer: added", obj) },
		UpdateFunc: func(_, obj any) { printSet("informer: updated", obj) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the cache of %s was not filled: %w", kind, ctx.Err())
		}
	}
	set, err := sets.Lister().JobSets(e.namespace).Get(setName)
	if err != nil {
		return err
	}
	fmt.Printf("the cache has %s\n", set.Name)
	return nil
}

func printSet(what string, obj any) {
	if set, ok := obj.(*jobsetv1alpha2.JobSet); ok {
		fmt.Printf("%s %s, suspended: %t, restarts: %d\n", what, set.Name, ptr.Deref(set.Spec.Suspend, false), set.Status.Restarts)
	}
}

// apply changes fields with server-side apply: it says what they are to be, and owns these fields alone.
func (e *example) apply(ctx context.Context) error {
	set := jobsetapply.JobSet(setName, e.namespace).
		WithLabels(map[string]string{"example.com/team": "research"}).
		WithSpec(jobsetapply.JobSetSpec().WithSuspend(false))
	// Another manager has set suspend: force takes the field over.
	applied, err := e.client.JobsetV1alpha2().JobSets(e.namespace).Apply(ctx, set, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return err
	}
	fmt.Printf("applied: suspended is %t now\n", ptr.Deref(applied.Spec.Suspend, false))
	return nil
}

// restart waits until the set runs, and requests an action. The precondition makes a repeated request harmless.
func (e *example) restart(ctx context.Context) error {
	set, err := e.until(ctx, "it runs", func(set *jobsetv1alpha2.JobSet) bool {
		jobs := set.Status.ReplicatedJobsStatus
		return len(jobs) == 1 && jobs[0].Ready+jobs[0].Succeeded == 2
	})
	if err != nil {
		return err
	}
	attempt := set.Status.Attempts[len(set.Status.Attempts)-1].Number
	answer, err := e.client.JobsetV1alpha2().JobSets(e.namespace).Restart(ctx, setName, &batchv1alpha1.JobSetRestart{
		Spec: batchv1alpha1.JobSetRestartSpec{
			Reason:        "the example shows a restart",
			Preconditions: &batchv1alpha1.ActionPreconditions{UID: &set.UID, Attempt: &attempt},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("restart:", answer.Status.Message)
	return nil
}

// complete waits for a condition. A set that has failed never completes, so both ends are waited for.
func (e *example) complete(ctx context.Context) error {
	set, err := e.until(ctx, "it has ended", func(set *jobsetv1alpha2.JobSet) bool {
		return meta.IsStatusConditionTrue(set.Status.Conditions, jobsetv1alpha2.JobSetCompleted) ||
			meta.IsStatusConditionTrue(set.Status.Conditions, jobsetv1alpha2.JobSetFailed)
	})
	if err != nil {
		return err
	}
	if failed := meta.FindStatusCondition(set.Status.Conditions, jobsetv1alpha2.JobSetFailed); failed != nil &&
		failed.Status == metav1.ConditionTrue {
		return fmt.Errorf("%s failed: %s", set.Name, failed.Message)
	}
	fmt.Printf("%s has completed after %d attempts\n", set.Name, len(set.Status.Attempts))
	return nil
}

// until lists and watches the set until it is as wanted. It survives the end of watches and restarts of the server.
func (e *example) until(ctx context.Context, what string, wanted func(*jobsetv1alpha2.JobSet) bool) (*jobsetv1alpha2.JobSet, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	sets := e.client.JobsetV1alpha2().JobSets(e.namespace)
	named := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, setName).String()
		return options
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return sets.List(ctx, named(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return sets.Watch(ctx, named(options))
		},
	}
	event, err := watchtools.UntilWithSync(ctx, source, &jobsetv1alpha2.JobSet{}, nil, func(event watch.Event) (bool, error) {
		set, ok := event.Object.(*jobsetv1alpha2.JobSet)
		return ok && wanted(set), nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until %s: %s: %w", setName, what, err)
	}
	return event.Object.(*jobsetv1alpha2.JobSet), nil
}
