// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// workersOf returns the StatefulSets of the workers of so many groups.
func workersOf(groups int) (all []plan.NewWorkers) {
	for i := range groups {
		name := fmt.Sprint("lws-", i)
		all = append(all, plan.NewWorkers{StatefulSet: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, OwnerReferences: controlledBy("Pod", name, types.UID("leader-"+name)),
			Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "lws", leaderworkersetv1.RevisionKey: "r"},
		}}})
	}
	return all
}

// TestDeniedWorkersAreAskedForSeldom has a set of 50 groups whose workers the API does not accept, and a pod that changes every half a
// second: each change leads to a pass.
func TestDeniedWorkersAreAskedForSeldom(t *testing.T) {
	const groups, minutes = 50, 10
	resource := appsv1.Resource("statefulsets")
	for name, tc := range map[string]struct {
		deny func(name string) error
		// first is how many requests are denied in the first minute at most, and later in each other one.
		first, later int
	}{
		"a webhook denies each of them": {func(name string) error {
			return apierrors.NewForbidden(resource, name, errors.New(`admission webhook "w" denied the request: no `+name))
		}, 2 * groups, 10},
		"a quota is used up": {func(name string) error {
			return apierrors.NewForbidden(resource, name, errors.New("exceeded quota: q, requested: count/statefulsets.apps=1"))
		}, 2, 1},
		"the template is invalid": {func(name string) error {
			return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), name,
				field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "containers"), "")})
		}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			kube, now := fake.NewClientset(), clocktesting.NewFakePassiveClock(time.Now())
			denied := make([]int, minutes)
			begin := now.Now()
			kube.PrependReactor("create", "statefulsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
				denied[int(now.Now().Sub(begin)/time.Minute)]++
				return true, nil, tc.deny(action.(clienttesting.CreateAction).GetObject().(metav1.Object).GetName())
			})
			owner := refusedOwner()
			s := syncerOf(owner, kube, now)
			p := plan.Plan{CreateWorkers: workersOf(groups)}
			var first string
			for range minutes * 120 {
				results, err := s.Apply(t.Context(), &plan.Observed{Set: owner, Now: metav1.NewTime(now.Now())}, p)
				if first == "" && err != nil {
					first = err.Error()
				}
				if err == nil || err.Error() != first || len(results.WorkerErrors) == 0 {
					t.Fatalf("error %v, want as at first: %s", err, first)
				}
				now.SetTime(now.Now().Add(500 * time.Millisecond))
			}
			t.Logf("denied by minute: %v", denied)
			for minute, n := range denied {
				most := tc.later
				if minute == 0 {
					most = tc.first
				}
				if n > most {
					t.Errorf("%d requests were denied in minute %d, want %d at most", n, minute, most)
				}
			}
			owner.Generation++
			before := len(kube.Actions())
			if _, err := s.Apply(t.Context(), &plan.Observed{Set: owner, Now: metav1.NewTime(now.Now())}, p); err == nil || len(kube.Actions()) == before {
				t.Errorf("a new generation is asked for at once: %v", err)
			}
		})
	}
}
