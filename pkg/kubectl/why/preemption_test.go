// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestPreemptorOf(t *testing.T) {
	for message, want := range map[string]preemptor{
		preemptionText: {uid: "uid-big-workload", jobUID: "uid-big", because: "prioritization in the ClusterQueue"},
		"Preempted to accommodate a workload (UID: u, JobUID: UNKNOWN) due to reclamation within the cohort": {uid: "u", because: "reclamation within the cohort"},
		"Preempted to accommodate a workload (UID: u) in the ClusterQueue":                                   {uid: "u"},
		"Preempted to accommodate a higher priority Workload":                                                {},
	} {
		if got := preemptorOf(message); got != want {
			t.Errorf("%s: %+v, want %+v", message, got, want)
		}
	}
}

// TestLoadFindsThePreemptor finds it in another namespace, and names what may not be read.
func TestLoadFindsThePreemptor(t *testing.T) {
	mine := kueueObject("Workload", "jobset-train", map[string]any{})
	mine.SetNamespace("team")
	mine.SetLabels(map[string]string{jobUIDLabel: "uid-train"})
	mine.SetOwnerReferences([]metav1.OwnerReference{{UID: "uid-train"}})
	state := &Kueue{}
	preemptedFor(nil, preemptionText)(state)
	mine.Object["status"] = state.Workload.Object["status"]
	other := bigger("other")
	other.SetName("another")
	other.SetUID("uid-another")
	cases := map[string]struct {
		objects  []runtime.Object
		refused  bool
		want     string
		wantGaps []Gap
	}{
		"in another namespace":            {objects: []runtime.Object{bigger("other")}, want: "other/jobset-big-1a2b3"},
		"recreated since":                 {objects: []runtime.Object{other}, want: "other/another"},
		"gone":                            {},
		"in a namespace that is not read": {objects: []runtime.Object{bigger("other")}, refused: true, wantGaps: []Gap{{"workloads.kueue.x-k8s.io of other namespaces", "forbidden"}}},
		"in the namespace of the set":     {objects: []runtime.Object{bigger("team")}, refused: true, want: "team/jobset-big-1a2b3", wantGaps: []Gap{{"workloads.kueue.x-k8s.io of other namespaces", "forbidden"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, inQueue(), append(c.objects, mine)...)
			w.dynamic.PrependReactor("list", "workloads", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return c.refused && action.GetNamespace() == "", nil, forbidden("workloads")
			})
			e := w.load(t)
			if got := qualifiedName(e.Kueue.Preemptor); got != c.want {
				t.Errorf("preemptor %q, want %q", got, c.want)
			}
			gaps := slices.DeleteFunc(e.NotLookedAt, func(g Gap) bool { return !strings.HasPrefix(g.Source, "workloads") })
			if diff := cmp.Diff(c.wantGaps, gaps); diff != "" && len(c.wantGaps)+len(gaps) > 0 {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
		})
	}
}

func qualifiedName(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// TestRetryIsSuggestedWhereTheServerRetries compares the last command of a failed set with what the server accepts.
func TestRetryIsSuggestedWhereTheServerRetries(t *testing.T) {
	inAQueue := set(func(js *jobsetv1alpha2.JobSet) {
		js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "research"}
	})
	owned := set(func(js *jobsetv1alpha2.JobSet) {
		js.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainJob", Name: "big", Controller: ptr.To(true)}}
	})
	nobody := func(*Evidence) {}
	for name, failure := range map[string]func(*Evidence){
		"cancelled": has(jobsetv1alpha2.JobSetFailed, "Cancelled", "cancelled by alice"),
		"cancelled while queued": func(e *Evidence) {
			has(jobsetv1alpha2.JobSetFailed, "Cancelled", "cancelled by alice")(e)
			e.JobSet.Spec.Suspend = ptr.To(true)
		},
		"restarts used up": has(jobsetv1alpha2.JobSetFailed, "ReachedMaxRestarts", "restarts are used up"),
	} {
		for who, c := range map[string]struct {
			change func(*Evidence)
			want   string
		}{
			"its user":  {nobody, "kubectl jobset -n team retry train"},
			"its queue": {inAQueue, "kubectl -n team get jobset train -o yaml  # recreate it to run it again: the queue research does not run a finished set again"},
			"its owner": {owned, "kubectl -n team get trainjob big -o yaml  # recreate it to run it again: it owns the set"},
		} {
			t.Run(name+", decided by "+who, func(t *testing.T) {
				if name == "restarts used up" && who == "its user" {
					c.want += " --max-restarts 1" // without, the next failure ends the set again
				}
				var commands []string
				for _, f := range Diagnose(healthy(without, failure, c.change)).Findings {
					commands = append(commands, f.Commands...)
				}
				if !slices.Contains(commands, c.want) {
					t.Errorf("commands %q, want %q among them", commands, c.want)
				}
				for _, command := range commands {
					if command != c.want && strings.Contains(command, " retry ") {
						t.Errorf("suggested: %s", command)
					}
				}
			})
		}
	}
}
