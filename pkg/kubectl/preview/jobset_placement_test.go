// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

const rack = "example.com/rack"

func exclusive(js *jobsetv1alpha2.JobSet) {
	js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: rack}
}

// clusterOf has racks of one node each, with room for two pods of one CPU.
func clusterOf(racks int) *kubefake.Clientset {
	var objects []runtime.Object
	for i := range racks {
		name := fmt.Sprintf("r%d", i)
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{rack: name}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("9")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return kubefake.NewClientset(objects...)
}

// TestPlaceNowChoosesAsTheControllerDoes has the placer of the controller choose among the racks of a cluster.
func TestPlaceNowChoosesAsTheControllerDoes(t *testing.T) {
	other := builders.JobSet("other", exclusive)
	other.Status.Placement = &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{
		{Name: "w", TopologyKey: rack, Jobs: []jobsetv1alpha2.JobPlacement{{Domain: "r0", Nodes: 1}}},
	}}
	for name, tc := range map[string]struct {
		racks int
		want  Placement
	}{
		"room": {4, Placement{State: Placed, Jobs: []PlacedJob{{"train-w-0", rack, "r1"}, {"train-w-1", rack, "r2"}, {"train-w-2", rack, "r3"}}}},
		"no room": {3, Placement{State: NoDomain, Message: "there are not enough domains with room now, so that the Jobs would wait, or the scheduler would look for domains " +
			`(--placement-when-full of the controller): 3 jobs of replicatedJob "w", with 2 pods, each need a domain of "example.com/rack": ` +
			"of 3 domains, 2 are free and have room, 1 is taken by jobs (default/other: 1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			js := trainSet(exclusive)["train"]
			placed, err := placeNow(t.Context(), clusterOf(tc.racks), []*jobsetv1alpha2.JobSet{other}, js)
			var got Placement
			got.fill(js, placed, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAPreviewReadsForPlacement(t *testing.T) {
	for _, what := range []string{"nodes", "pods", "daemonsets", "limitranges", "runtimeclasses", "priorityclasses"} {
		kube := clusterOf(1)
		kube.PrependReactor("list", what, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: what}, "", errors.New("no"))
		})
		if err := readable(t.Context(), kube); err == nil || !strings.HasPrefix(err.Error(), "listing "+what+": ") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	kube := clusterOf(1)
	if err := readable(t.Context(), kube); err != nil {
		t.Error(err)
	}
	kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.PodList{ListMeta: metav1.ListMeta{RemainingItemCount: ptr.To[int64](200_000)}, Items: make([]corev1.Pod, 1)}, nil
	})
	want := "the cluster has 1 node and 200,001 pods, and a preview reads at most 10,000 and 100,000"
	if err := readable(t.Context(), kube); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestPlacementInPreviews(t *testing.T) {
	on := gates.Gates{ExclusivePlacement: true}
	suspended := func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }
	for name, tc := range map[string]struct {
		answers *answers
		want    PlacementState
		note    string
	}{
		"not asked for": {answers: &answers{sets: trainSet(), gates: on}},
		"the gate is off": {
			&answers{sets: trainSet(exclusive)}, Ignored,
			"exclusive placement: the annotation alpha.jobset.sigs.k8s.io/exclusive-topology is ignored, because the feature gate ExclusivePlacement is off: turn it on in both programs with --feature-gates=ExclusivePlacement=true",
		},
		"the gate is not known": {
			&answers{sets: trainSet(exclusive), noGates: apierrors.NewNotFound(schema.GroupResource{}, "")}, NotKnown,
			"exclusive placement: whether the feature gate ExclusivePlacement is on is not known; while it is off, the annotation " + jobsetv1alpha2.ExclusiveKey + " is ignored",
		},
		"the set is suspended": {
			&answers{sets: trainSet(exclusive, suspended), gates: on}, Later, "exclusive placement: the Jobs get topology domains when the set is resumed",
		},
		"pods may not be read": {
			&answers{sets: trainSet(exclusive), gates: on, notPlaced: errors.New("listing pods: forbidden")}, NotKnown,
			"exclusive placement: which domains the Jobs would get is not known: listing pods: forbidden",
		},
		"the placement is not known": {
			&answers{sets: trainSet(exclusive), gates: on, placed: &domains.Placed{Reason: "NodesUnknown", Message: "nodes and pods are not known yet: nodes"}}, NotKnown,
			"exclusive placement: which domains the Jobs would get is not known: nodes and pods are not known yet: nodes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := previewOne(t, tc.answers)
			var got PlacementState
			if set.Placement != nil {
				got = set.Placement.State
			}
			if got != tc.want || !strings.Contains(strings.Join(set.Notes, "\n"), tc.note) {
				t.Errorf("the state is %q, want %q; the notes are %q, want %q", got, tc.want, set.Notes, tc.note)
			}
		})
	}
}

// TestRenderPlacement shows the domains of Jobs on terminals of several widths.
func TestRenderPlacement(t *testing.T) {
	for _, jobs := range []int{3, 30} {
		placed := &domains.Placed{Placement: &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{{Name: "w", TopologyKey: rack}}}}
		for i := range jobs {
			rj := &placed.Placement.ReplicatedJobs[0]
			rj.Jobs = append(rj.Jobs, jobsetv1alpha2.JobPlacement{Domain: fmt.Sprintf("rack-%02d", i)})
		}
		set := previewOne(t, &answers{sets: trainSet(exclusive), gates: gates.Gates{ExclusivePlacement: true}, placed: placed})
		for _, width := range []int{0, 60, 100, 200} {
			golden.Compare(t, fmt.Sprintf("placement-%d-jobs-%d.txt", jobs, width), strings.Join(set.Lines(cli.Terminal{Width: width}), "\n")+"\n")
		}
	}
}
