// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	typedleaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/leaderworkerset/v1"
)

type leaderWorkerSet = leaderworkersetv1.LeaderWorkerSet

// lwsEnv is what one test of LeaderWorkerSets works with: a namespace of its own.
type lwsEnv struct {
	*env
	groups typedleaderworkersetv1.LeaderWorkerSetInterface
}

// newLWSEnv lets the test run beside others.
func newLWSEnv(t *testing.T) *lwsEnv {
	t.Helper()
	e := newEnv(t)
	l := &lwsEnv{env: e, groups: shared.JobSets.LeaderworkersetV1().LeaderWorkerSets(e.namespace)}
	t.Cleanup(func() {
		if t.Failed() {
			e.Log(e.run("", "get", "lws,statefulsets,pods,services,controllerrevisions", "-o", "wide"), e.run("", "get", "lws", "-o", "yaml"), e.run("", "events"))
		}
		e.run("", "delete", "lws", "--all", "--wait=false")
	})
	return l
}

// groupsOf is a set of so many groups of so many pods, all of whose pods are alike.
func groupsOf(name string, replicas, size int32) *leaderWorkerSet {
	return &leaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas: ptr.To(replicas),
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				GroupSize: ptr.To(size),
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "main", Image: "example.com/main:1"}},
					TerminationGracePeriodSeconds: ptr.To[int64](0),
				}},
			},
		},
	}
}

// configure changes a set before it is created.
func configure(set *leaderWorkerSet, change func(*leaderworkersetv1.LeaderWorkerSetSpec)) *leaderWorkerSet {
	change(&set.Spec)
	return set
}

func (e *lwsEnv) create(set *leaderWorkerSet) *leaderWorkerSet {
	e.Helper()
	created, err := e.groups.Create(e.Context(), set, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return created
}

// applyFile applies a manifest of artifacts/examples/leaderworkerset.
func (e *lwsEnv) applyFile(name string) {
	e.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "artifacts", "examples", "leaderworkerset", name+".yaml"))
	if err != nil {
		e.Fatal(err)
	}
	e.apply(string(content))
}

func (e *lwsEnv) getSet(name string) *leaderWorkerSet {
	e.Helper()
	set, err := e.groups.Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return set
}

// update changes the spec of a set, again after a conflict.
func (e *lwsEnv) update(name string, change func(*leaderWorkerSet)) {
	e.Helper()
	for {
		set := e.getSet(name)
		change(set)
		if _, err := e.groups.Update(e.Context(), set, metav1.UpdateOptions{}); err == nil {
			return
		} else if !apierrors.IsConflict(err) {
			e.Fatal(err)
		}
	}
}

// newImage makes the set roll.
func newImage(image string) func(*leaderWorkerSet) {
	return func(set *leaderWorkerSet) {
		t := &set.Spec.LeaderWorkerTemplate
		t.WorkerTemplate.Spec.Containers[0].Image = image
		if t.LeaderTemplate != nil {
			t.LeaderTemplate.Spec.Containers[0].Image = image
		}
	}
}

// awaitLWS waits until a condition of the set is True and observed, and returns the set.
func (e *lwsEnv) awaitLWS(name, condition string) *leaderWorkerSet {
	e.Helper()
	var set *leaderWorkerSet
	e.eventually(func() string {
		set = e.getSet(name)
		if c := meta.FindStatusCondition(set.Status.Conditions, condition); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != set.Generation {
			return fmt.Sprintf("condition %s of generation %d: %+v", condition, set.Generation, set.Status.Conditions)
		}
		return ""
	})
	return set
}

// awaitAvailable waits until the set is available with so many groups, all updated, and so many pods.
func (e *lwsEnv) awaitAvailable(name string, groups, pods int) *leaderWorkerSet {
	e.Helper()
	e.eventually(func() string {
		set := e.getSet(name)
		got := fmt.Sprintf("%d groups, %d ready, %d updated, %d pods", set.Status.Replicas, set.Status.ReadyReplicas, set.Status.UpdatedReplicas, len(e.podsOf(name)))
		if want := fmt.Sprintf("%d groups, %d ready, %d updated, %d pods", groups, groups, groups, pods); got != want {
			return "got " + got + "; want " + want
		}
		return ""
	})
	return e.awaitLWS(name, leaderworkersetv1.ConditionAvailable)
}

func (e *lwsEnv) statefulSet(name string) *appsv1.StatefulSet {
	e.Helper()
	sts, err := shared.Kube.AppsV1().StatefulSets(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		e.Fatal(err)
	}
	return sts
}

// awaitStatefulSets waits until exactly these StatefulSets are there.
func (e *lwsEnv) awaitStatefulSets(want ...string) map[string]*appsv1.StatefulSet {
	e.Helper()
	slices.Sort(want)
	var got map[string]*appsv1.StatefulSet
	e.eventually(func() string {
		list, err := shared.Kube.AppsV1().StatefulSets(e.namespace).List(e.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		got = map[string]*appsv1.StatefulSet{}
		for i := range list.Items {
			got[list.Items[i].Name] = &list.Items[i]
		}
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			return fmt.Sprintf("StatefulSets: got %v, want %v", names, want)
		}
		return ""
	})
	return got
}

// awaitServices waits until exactly these Services are there.
func (e *lwsEnv) awaitServices(want ...string) {
	e.Helper()
	slices.Sort(want)
	e.eventually(func() string {
		list, err := shared.Kube.CoreV1().Services(e.namespace).List(e.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, service := range list.Items {
			got = append(got, service.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Sprintf("Services: got %v, want %v", got, want)
		}
		return ""
	})
}

// recording is what a StatefulSet went through.
type recording struct {
	mu   sync.Mutex
	peak int32
}

// record follows the leader StatefulSet of a set, which exists, until the test ends.
func (e *lwsEnv) record(name string) *recording {
	e.Helper()
	r := &recording{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	watch, err := shared.Kube.AppsV1().StatefulSets(e.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		cancel()
		e.Fatal(err)
	}
	e.Cleanup(func() { watch.Stop(); cancel() })
	go func() {
		for event := range watch.ResultChan() {
			if sts, ok := event.Object.(*appsv1.StatefulSet); ok {
				r.mu.Lock()
				r.peak = max(r.peak, *sts.Spec.Replicas)
				r.mu.Unlock()
			}
		}
	}()
	return r
}

// Peak is the highest number of replicas so far.
func (r *recording) Peak() int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peak
}

// awaitEvent waits for an event about the set.
func (e *lwsEnv) awaitEvent(reason, note string) {
	e.Helper()
	e.eventually(func() string {
		list, err := shared.Kube.EventsV1().Events(e.namespace).List(e.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, event := range list.Items {
			if event.Regarding.Kind == "LeaderWorkerSet" && event.Reason == reason && event.Note == note {
				return ""
			}
		}
		return fmt.Sprintf("no event %s %q", reason, note)
	})
}
