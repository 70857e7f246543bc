// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/fakestore"
)

// groupsHash is the end of the names of the groups of the set of these tests.
const groupsHash = "-277bbf9c41"

var (
	withGroups = gates.Gates{JobSetWorkloadAwareSchedulingAPI: true}
	podGroups  = jobsetgang.V1alpha2.GroupVersion().WithResource("podgroups")
	workloads  = jobsetgang.V1alpha2.GroupVersion().WithResource("workloads")
)

// newGroupRig returns a controller of a set that asks for a gang, in a cluster that serves the version of the scheduling API.
func newGroupRig(t *testing.T, gates gates.Gates, served jobsetgang.API, objects ...runtime.Object) *rig {
	t.Helper()
	js := newSet()
	js.Spec.Scheduling = &jobsetv1alpha2.JobSetSchedulingConfiguration{}
	r := newRig(t, js)
	r.kube.Resources = append(r.kube.Resources, &metav1.APIResourceList{
		GroupVersion: served.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "podgroups"}},
	})
	lists := map[schema.GroupVersionResource]string{}
	for _, api := range append([]jobsetgang.API{jobsetgang.Volcano, jobsetgang.Coscheduling}, jobsetgang.APIs...) {
		lists[api.GroupVersion().WithResource("podgroups")], lists[api.GroupVersion().WithResource("workloads")] = "PodGroupList", "WorkloadList"
	}
	r.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	fakestore.Install(&r.dynamic.Fake, r.dynamic.Tracker())
	r.dynamic.PrependReactor("create", "*", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		object := action.(clientgotesting.CreateAction).GetObject().(*unstructured.Unstructured)
		object.SetUID(types.UID("uid-" + object.GetName() + object.GetKind()))
		return false, nil, nil
	})
	if provider := gangplan.Provider(served); provider.OwnKind() {
		r.gang = provider
	}
	r.build(t, gates)
	return r
}

// groupWrites lists what was asked of the scheduling API, without reads, and without creations of what exists.
func (r *rig) groupWrites() (out []string) {
	exist := map[string]bool{}
	for _, action := range r.dynamic.Actions() {
		switch a := action.(type) {
		case clientgotesting.CreateAction:
			if name := a.GetResource().Resource + " " + a.GetObject().(metav1.Object).GetName(); !exist[name] {
				exist[name] = true
				out = append(out, "create "+name)
			}
		case clientgotesting.DeleteAction:
			delete(exist, a.GetResource().Resource+" "+a.GetName())
			out = append(out, "delete "+a.GetResource().Resource+" "+a.GetName()+" "+string(ptr.Deref(a.GetDeleteOptions().Preconditions.UID, "")))
		}
	}
	return out
}

func (r *rig) creationFailure(t *testing.T) string {
	t.Helper()
	if c := meta.FindStatusCondition(r.set(t).Status.Conditions, jobsetv1alpha2.JobCreationFailure); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason + ": " + c.Message
	}
	return ""
}

func (r *rig) suspend(t *testing.T, suspend bool) {
	t.Helper()
	js := r.set(t)
	js.Spec.Suspend = &suspend
	js.ResourceVersion = "" // whatever the controller has written
	if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestGroupsAreInertWithoutTheGate has a set with spec.scheduling run as one without.
func TestGroupsAreInertWithoutTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, gates.Gates{}, jobsetgang.V1alpha2)
		r.run(t)
		eventually(t, "the Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
		if n := len(r.dynamic.Actions()); n > 0 {
			t.Errorf("%d requests about groups", n)
		}
		job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-0", metav1.GetOptions{})
		if err != nil || job.Spec.Template.Spec.SchedulingGroup != nil || job.Annotations[jobsetgang.TemplateKey] != "" {
			t.Errorf("the Job is in a group: %v %v", job, err)
		}
		for _, action := range r.kube.Actions() {
			if action.GetResource().Resource == "resource" {
				t.Error("discovery was asked")
			}
		}
	})
}

// TestNoSetAsksForGroups has the gate on, and no set that asks.
func TestNoSetAsksForGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
		js := r.set(t)
		js.Spec.Scheduling = nil
		if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.run(t)
		eventually(t, "the Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
		if n := len(r.dynamic.Actions()); n > 0 {
			t.Errorf("%d requests about groups", n)
		}
	})
}

// TestGroupsFollowTheSet creates groups before Jobs, deletes them on suspension, and creates them on resumption.
func TestGroupsFollowTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
		r.run(t)
		eventually(t, "the Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
		want := []string{"create workloads js" + groupsHash, "create podgroups js" + groupsHash}
		diff(t, "writes", want, r.groupWrites())
		job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-0", metav1.GetOptions{})
		if err != nil || job.Spec.Template.Spec.SchedulingGroup == nil || *job.Spec.Template.Spec.SchedulingGroup.PodGroupName != "js"+groupsHash {
			t.Errorf("the Job is in no group: %v %v", job, err)
		}
		r.suspend(t, true)
		want = append(want, "delete podgroups js"+groupsHash+" uid-js"+groupsHash+"PodGroup", "delete workloads js"+groupsHash+" uid-js"+groupsHash+"Workload")
		eventually(t, "the groups are deleted", func() bool { return len(r.groupWrites()) >= len(want) })
		sorted := func(lines []string) string { // deletions have no order
			if len(lines) > 3 && strings.Contains(lines[2], "workloads") {
				lines[2], lines[3] = lines[3], lines[2]
			}
			return strings.Join(lines, "\n")
		}
		diff(t, "writes", strings.Join(want, "\n"), sorted(r.groupWrites()))
		r.suspend(t, false)
		want = append(want, want[:2]...)
		eventually(t, "there are new groups", func() bool { return len(r.groupWrites()) >= len(want) })
		diff(t, "writes", strings.Join(want, "\n"), sorted(r.groupWrites()))
	})
}

// TestGroupsOfOtherSchedulers has no Workload, and the pods name the group as the scheduler expects.
func TestGroupsOfOtherSchedulers(t *testing.T) {
	for api, group := range map[jobsetgang.API]func(*corev1.PodTemplateSpec) string{
		jobsetgang.Volcano:      func(pods *corev1.PodTemplateSpec) string { return pods.Annotations["scheduling.k8s.io/group-name"] },
		jobsetgang.Coscheduling: func(pods *corev1.PodTemplateSpec) string { return pods.Labels["scheduling.x-k8s.io/pod-group"] },
	} {
		t.Run(string(api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newGroupRig(t, withGroups, api)
				r.run(t)
				eventually(t, "the Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
				diff(t, "writes", []string{"create podgroups js" + groupsHash}, r.groupWrites())
				for _, action := range r.dynamic.Actions() {
					diff(t, "version", api.GroupVersion(), action.GetResource().GroupVersion())
				}
				job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-0", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				diff(t, "group of the pods", "js"+groupsHash, group(&job.Spec.Template))
			})
		})
	}
}

// TestOtherSchedulerIsAbsent has a cluster without the PodGroups of the scheduler that the controller is started for.
func TestOtherSchedulerIsAbsent(t *testing.T) {
	for api, want := range map[jobsetgang.API]string{
		jobsetgang.Volcano:      "NotSupported: the groups of the pods could not be created: the cluster serves no PodGroups of scheduling.volcano.sh/v1beta1; install Volcano",
		jobsetgang.Coscheduling: "NotSupported: the groups of the pods could not be created: the cluster serves no PodGroups of scheduling.x-k8s.io/v1alpha1; install a scheduler with",
	} {
		t.Run(string(api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newGroupRig(t, withGroups, api)
				r.kube.Resources = r.kube.Resources[:len(r.kube.Resources)-1]
				r.run(t)
				eventually(t, "the condition is True", func() bool { return r.creationFailure(t) != "" })
				if got := r.creationFailure(t); !strings.HasPrefix(got, want) {
					t.Errorf("condition %q, want %q", got, want)
				}
				if r.jobExists(t, "js-w-0") || r.jobExists(t, "js-w-1") {
					t.Error("a Job starts without its group")
				}
			})
		})
	}
}
