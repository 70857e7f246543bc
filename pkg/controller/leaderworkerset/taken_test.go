// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// takenGroups has a PodGroup of every name, which nothing controls.
type takenGroups struct {
	children.Client[*unstructured.Unstructured]
}

func (takenGroups) Create(_ context.Context, group *unstructured.Unstructured, _ metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: resourcePodGroups}, group.GetName())
}

func (takenGroups) Get(_ context.Context, name string, _ metav1.GetOptions) (*unstructured.Unstructured, error) {
	group := &unstructured.Unstructured{}
	group.SetName(name)
	return group, nil
}

// TestPodGroupsOfOthers checks that a group whose PodGroup has a taken name is reported and tried again.
func TestPodGroupsOfOthers(t *testing.T) {
	owner, now := refusedOwner(), clocktesting.NewFakePassiveClock(time.Now())
	s := syncerOf(owner, fake.NewClientset(), now)
	s.podGroups = children.NewWriter(s.deps.Host, schema.GroupKind{Kind: "PodGroup"}, resourcePodGroups, "podgroup",
		func(string) children.Client[*unstructured.Unstructured] { return takenGroups{} })
	group := &unstructured.Unstructured{}
	group.SetNamespace("ns")
	group.SetName("lws-0-abc")
	group.SetOwnerReferences(controlledBy("Pod", "lws-0", "leader"))
	obs := &plan.Observed{Set: owner, Now: metav1.NewTime(now.Now())}
	p := plan.Plan{CreatePodGroups: []*unstructured.Unstructured{group}}
	results, err := s.Apply(t.Context(), obs, p)
	if err == nil {
		t.Error("the pass succeeds, so that nothing tries again")
	}
	const want = "Failed to create podgroup lws-0-abc: it exists and is not controlled by the LeaderWorkerSet"
	for _, event := range plan.Finish(*obs, p, results).Others {
		if strings.Contains(event.Note, want) {
			return
		}
	}
	t.Errorf("no event %q", want)
}
