// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// The kinds that are moved.
var (
	jobSets          = jobsetv1alpha2.SchemeGroupVersion.WithResource("jobsets")
	leaderWorkerSets = leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets")
)

// childKinds are what controllers make of sets, beside pods.
var childKinds = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "persistentvolumeclaims"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
}

// takeover moves sets of one namespace.
type takeover struct {
	namespace string
	// was are the UIDs of all children, by kind and name.
	was map[string]string
	// running is how many of the pods run.
	running int
	// sets are the sets as they were, by resource and name.
	sets map[string]*unstructured.Unstructured
	// kinds are the resources to which the sets belong.
	kinds []schema.GroupVersionResource
}

// begin creates so many sets of each kind with four pods each, and waits until all run.
func begin(t *testing.T, sets, lws int) *takeover {
	t.Helper()
	o := &takeover{kinds: []schema.GroupVersionResource{jobSets, leaderWorkerSets}}
	namespace, err := cluster.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "moved-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.namespace = namespace.Name
	for i := range sets {
		o.create(t, o.newSet(fmt.Sprint("set-", i)))
	}
	for i := range lws {
		o.createLeaderWorkerSet(t, o.newLeaderWorkerSet(fmt.Sprint("groups-", i)))
	}
	o.awaitPods(t, sets*4+lws*4)
	return o
}

// running is the annotation that makes the pods of a template run until they are deleted.
var running = map[string]string{"jobset-apiserver.io/kwok-outcome": "running"}

// newSet returns a set of two Jobs with two pods each, which run until they are deleted.
func (o *takeover) newSet(name string) *jobsetv1alpha2.JobSet {
	set := builders.JobSet(name, builders.WithJobs("workers", 2, 2))
	set.Namespace = o.namespace
	set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = maps.Clone(running)
	return set
}

// create creates a set as soon as the webhooks answer.
func (o *takeover) create(t *testing.T, set *jobsetv1alpha2.JobSet) {
	t.Helper()
	framework.Eventually(t, "the set is created", func(ctx context.Context) error {
		_, err := cluster.JobSets.JobsetV1alpha2().JobSets(o.namespace).Create(ctx, set.DeepCopy(), metav1.CreateOptions{})
		return err
	})
}

// newLeaderWorkerSet returns a set of two groups with two pods each.
func (o *takeover) newLeaderWorkerSet(name string) *leaderworkersetv1.LeaderWorkerSet {
	set := builders.LeaderWorkerSet(name, 2, 2)
	set.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: o.namespace}
	set.Spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = maps.Clone(running)
	return set
}

func (o *takeover) createLeaderWorkerSet(t *testing.T, set *leaderworkersetv1.LeaderWorkerSet) {
	t.Helper()
	framework.Eventually(t, "the LeaderWorkerSet is created", func(ctx context.Context) error {
		_, err := cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(o.namespace).Create(ctx, set.DeepCopy(), metav1.CreateOptions{})
		return err
	})
}

// get returns a set of a resource.
func (o *takeover) get(t *testing.T, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := cluster.Dynamic.Resource(resource).Namespace(o.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func (o *takeover) remove(t *testing.T, name string) {
	t.Helper()
	o.delete(t, jobSets, name)
}

func (o *takeover) delete(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if err := cluster.Dynamic.Resource(resource).Namespace(o.namespace).Delete(t.Context(), name, background); err != nil {
		t.Fatal(err)
	}
}

// removeAll deletes all sets.
func (o *takeover) removeAll(t *testing.T) {
	t.Helper()
	for key := range o.sets {
		resource, name, _ := strings.Cut(key, "/")
		if resource == jobSets.Resource {
			o.delete(t, jobSets, name)
		} else {
			o.delete(t, leaderWorkerSets, name)
		}
	}
}

// awaitPods waits until so many pods run and no other one exists, and notes what there is.
func (o *takeover) awaitPods(t *testing.T, pods int) {
	t.Helper()
	framework.Eventually(t, fmt.Sprint(pods, " pods run"), func(ctx context.Context) error {
		children, running, err := o.children(ctx)
		exist := 0
		for name := range children {
			if strings.HasPrefix(name, "pod ") {
				exist++
			}
		}
		if err == nil && (running != pods || exist != pods) {
			err = fmt.Errorf("%d of %d pods run", running, exist)
		}
		return err
	})
	o.note(t)
}

// note notes what there is.
func (o *takeover) note(t *testing.T) {
	t.Helper()
	var err error
	if o.was, o.running, err = o.children(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.sets = o.stored(t)
}

// stored returns all sets by resource and name, without what only tells a version from another one.
func (o *takeover) stored(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, resource := range o.kinds {
		framework.Eventually(t, "the sets are served", func(ctx context.Context) error {
			list, err := cluster.Dynamic.Resource(resource).Namespace(o.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				list.Items[i].SetResourceVersion("")
				all[resource.Resource+"/"+list.Items[i].GetName()] = &list.Items[i]
			}
			return nil
		})
	}
	return all
}

// children returns the UIDs of all children, and how many pods run.
func (o *takeover) children(ctx context.Context) (uids map[string]string, running int, err error) {
	pods, err := cluster.Kube.CoreV1().Pods(o.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	uids = map[string]string{}
	for _, p := range pods.Items {
		uids["pod "+p.Name] = string(p.UID)
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			running++
		}
	}
	for _, kind := range childKinds {
		list, err := cluster.Metadata.Resource(kind).Namespace(o.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, 0, err
		}
		for _, child := range list.Items {
			uids[kind.Resource+" "+child.Name] = string(child.UID)
		}
	}
	return uids, running, nil
}

// unchanged fails the test if a set, a child or a pod is gone, new or another one.
func (o *takeover) unchanged(t *testing.T, when string) {
	t.Helper()
	now, running, err := o.children(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.was, now); diff != "" || running != o.running {
		t.Errorf("%s: %d pods run (-before +now):\n%s", when, running, diff)
	}
	if diff := cmp.Diff(uids(o.sets), uids(o.stored(t))); diff != "" {
		t.Errorf("%s: sets (-before +now):\n%s", when, diff)
	}
}

// identical fails the test if anything at all of a set has changed.
func (o *takeover) identical(t *testing.T, when string) {
	t.Helper()
	o.unchanged(t, when)
	now := o.stored(t)
	for key, was := range o.sets {
		if diff := cmp.Diff(was, now[key]); diff != "" {
			t.Errorf("%s: %s (-before +now):\n%s", when, key, diff)
		}
	}
}

func uids(sets map[string]*unstructured.Unstructured) map[string]string {
	all := map[string]string{}
	for key, set := range sets {
		all[key] = string(set.GetUID())
	}
	return all
}

// What a migration writes on children of sets that get another UID, and takes away again.
const (
	ownersKey     = "migration.jobset-apiserver.io/owner-references"
	orphanedLabel = "migration.jobset-apiserver.io/orphaned"
)

// owned fails the test if a child that a set makes, which may be a set itself, has no set that exists as its owner.
func (o *takeover) owned(t *testing.T) {
	t.Helper()
	sets := map[string]string{}
	for _, set := range o.stored(t) {
		sets[string(set.GetUID())] = set.GetName()
	}
	for _, kind := range slices.Concat(childKinds, o.kinds) {
		list, err := cluster.Metadata.Resource(kind).Namespace(o.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range list.Items {
			if len(child.Annotations[ownersKey]) > 0 || child.Labels[orphanedLabel] != "" {
				t.Errorf("%s %s has still marks of the migration: %v %v", kind.Resource, child.Name, child.Annotations, child.Labels)
			}
			if owner := metav1.GetControllerOf(&child); owner != nil && strings.HasSuffix(owner.Kind, "Set") && owner.Kind != "StatefulSet" && sets[string(owner.UID)] != owner.Name {
				t.Errorf("%s %s is owned by %v, which does not exist", kind.Resource, child.Name, owner)
			}
			if kind.Resource == "jobs" && metav1.GetControllerOf(&child) == nil {
				t.Error(errors.New(child.Name), "has no owner")
			}
		}
	}
}
