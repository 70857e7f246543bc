// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	ownfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

var train = Group{Namespace: "ns", Name: "train", Prefix: plan.Prefixes[0]}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

func newJob(name string, parallelism, completions *int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{Parallelism: parallelism, Completions: completions}}
}

// replicated is a replicatedJob of two Jobs with three pods each, of the group named.
func replicated(name, group string) jobsetv1alpha2.ReplicatedJob {
	rj := jobsetv1alpha2.ReplicatedJob{Name: name, Replicas: ptr.To[int32](2)}
	rj.Template.Spec.Parallelism = ptr.To[int32](3)
	if group != "" {
		rj.Template.Spec.Template.Labels = map[string]string{train.Prefix.GroupKey: group}
	}
	return rj
}

// lws is a LeaderWorkerSet of two groups with four pods each.
func lws(name string, leader, worker bool) *unstructured.Unstructured {
	template := func(labeled bool) map[string]any {
		labels := map[string]any{}
		if labeled {
			labels[train.Prefix.GroupKey] = train.Name
		}
		return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{}}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": "uid-" + name},
		"spec": map[string]any{"replicas": int64(2), "leaderWorkerTemplate": map[string]any{
			"size": int64(4), "leaderTemplate": template(leader), "workerTemplate": template(worker),
		}},
	}}
}

type world struct {
	*Sizes
	kube  *fake.Clientset
	clock *clocktesting.FakePassiveClock
}

func newWorld() *world {
	deployed := &appsv1.ReplicaSet{ObjectMeta: meta("deployed"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1)}}
	deployed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web", Controller: ptr.To(true)}}
	set := func(name string, jobs ...jobsetv1alpha2.ReplicatedJob) *jobsetv1alpha2.JobSet {
		return &jobsetv1alpha2.JobSet{ObjectMeta: meta(name), Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: jobs}}
	}
	w := &world{clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.kube = fake.NewClientset(
		newJob("plain", ptr.To[int32](4), nil), newJob("defaults", nil, nil), newJob("short", ptr.To[int32](4), ptr.To[int32](3)),
		&appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](5)}},
		&appsv1.ReplicaSet{ObjectMeta: meta("bare"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](6)}}, deployed,
		&appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](7)}},
	)
	own := ownfake.NewClientset(set("set", replicated("a", "train"), replicated("b", "other"), replicated("c", "train")), set("unlabeled", replicated("a", "")))
	kinds := map[schema.GroupVersionResource]string{leaderWorkerSets: "LeaderWorkerSetList"}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, lws("all", true, true), lws("workers", false, true), lws("none", false, false))
	w.Sizes = NewSizes(w.kube, own, dynamic, w.clock)
	return w
}

func owner(kind, name string) plan.Owner {
	return plan.Owner{Kind: kind, Name: name, UID: types.UID("uid-" + name)}
}

func TestSizesOfOwners(t *testing.T) {
	w := newWorld()
	unknown := plan.OwnerSize{Unknown: true}
	for name, tc := range map[string]struct {
		owner plan.Owner
		want  plan.OwnerSize
	}{
		"a Job":                               {owner(plan.KindJob, "plain"), plan.OwnerSize{Root: "uid-plain", Pods: 4}},
		"a Job with defaults":                 {owner(plan.KindJob, "defaults"), plan.OwnerSize{Root: "uid-defaults", Pods: 1}},
		"a Job with few completions":          {owner(plan.KindJob, "short"), plan.OwnerSize{Root: "uid-short", Pods: 3}},
		"a Job that is gone":                  {owner(plan.KindJob, "gone"), unknown},
		"a Job of the name of another":        {plan.Owner{Kind: plan.KindJob, Name: "plain", UID: "before"}, unknown},
		"a JobSet":                            {owner(plan.KindJobSet, "set"), plan.OwnerSize{Root: "uid-set", Pods: 12}},
		"a JobSet without the label":          {owner(plan.KindJobSet, "unlabeled"), unknown},
		"a StatefulSet":                       {owner(plan.KindStatefulSet, "db"), plan.OwnerSize{Root: "uid-db", Pods: 5}},
		"a ReplicaSet":                        {owner(plan.KindReplicaSet, "bare"), plan.OwnerSize{Root: "uid-bare", Pods: 6}},
		"a ReplicaSet of a Deployment":        {owner(plan.KindReplicaSet, "deployed"), plan.OwnerSize{Root: "uid-web", Pods: 7}},
		"a LeaderWorkerSet":                   {plan.Owner{Kind: plan.KindLeaderWorkerSet, Name: "all"}, plan.OwnerSize{Root: "uid-all", Pods: 8}},
		"the workers of a LeaderWorkerSet":    {plan.Owner{Kind: plan.KindLeaderWorkerSet, Name: "workers"}, plan.OwnerSize{Root: "uid-workers", Pods: 6}},
		"a LeaderWorkerSet without the label": {plan.Owner{Kind: plan.KindLeaderWorkerSet, Name: "none"}, unknown},
		"a LeaderWorkerSet that is gone":      {plan.Owner{Kind: plan.KindLeaderWorkerSet, Name: "gone"}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Read(t.Context(), train, []plan.Owner{tc.owner}, 0)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "size", map[plan.Owner]plan.OwnerSize{tc.owner: tc.want}, got)
		})
	}
}

// TestSizesAreRemembered counts requests.
func TestSizesAreRemembered(t *testing.T) {
	w := newWorld()
	plain := owner(plan.KindJob, "plain")
	read := func(group Group, age time.Duration) {
		t.Helper()
		if _, err := w.Read(t.Context(), group, []plan.Owner{plain}, age); err != nil {
			t.Fatal(err)
		}
	}
	read(train, time.Second)
	read(train, time.Second)
	diff(t, "reads of a size that was just read", 1, len(w.kube.Actions()))
	w.clock.SetTime(w.clock.Now().Add(2 * time.Second))
	read(train, 10*time.Second)
	diff(t, "reads of one that is not too old", 1, len(w.kube.Actions()))
	read(train, time.Second)
	diff(t, "reads of one that is too old", 2, len(w.kube.Actions()))
	other := train
	other.Name = "other"
	read(other, time.Second)
	diff(t, "reads for another group", 3, len(w.kube.Actions()))
}

// TestErrorsOfOwners has one owner of many that cannot be read.
func TestErrorsOfOwners(t *testing.T) {
	w := newWorld()
	w.kube.PrependReactor("get", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		denied := action.(clientgotesting.GetAction).GetName() == "secret"
		return denied, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "secret", fmt.Errorf("no"))
	})
	sizes, err := w.Read(t.Context(), train, []plan.Owner{owner(plan.KindJob, "plain"), owner(plan.KindJob, "secret")}, 0)
	if err == nil || !strings.HasPrefix(err.Error(), "reading Job ns/secret: ") {
		t.Errorf("error %v", err)
	}
	diff(t, "sizes that were read", 1, len(sizes))
}

// TestReadsEndWithTheFirstRefusal has many owners, none of which the controller may read.
func TestReadsEndWithTheFirstRefusal(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("get", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, action.(clientgotesting.GetAction).GetName(), nil)
	})
	s := NewSizes(kube, nil, nil, clocktesting.NewFakePassiveClock(time.Now()))
	s.Parallel = 2
	var owners []plan.Owner
	for i := range 100 {
		owners = append(owners, plan.Owner{Kind: plan.KindJob, Name: fmt.Sprint("job-", i), UID: "x"})
	}
	_, err := s.Read(t.Context(), train, owners, time.Second)
	if err == nil || !strings.HasPrefix(err.Error(), "reading Job ns/job-0: ") {
		t.Errorf("the error is %v, want that of the first owner", err)
	}
	if n := len(kube.Actions()); n > 10 {
		t.Errorf("%d reads", n)
	}
}
