// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// countingSets counts reads of sets.
type countingSets struct {
	children.LiveOwnerClient[*leaderworkersetv1.LeaderWorkerSet]
	reads *int
}

func (c countingSets) Get(ctx context.Context, name string, options metav1.GetOptions) (*leaderworkersetv1.LeaderWorkerSet, error) {
	*c.reads++
	return c.LiveOwnerClient.Get(ctx, name, options)
}

// TestOwnersAreReadForRequestsOnly makes a pass each second for five minutes. The owners of orphans are read in those passes only in which
// the API is asked to adopt one.
func TestOwnersAreReadForRequestsOnly(t *testing.T) {
	orphan := orphansOf(plan.Ref{Name: "lws-0", UID: "uid-workers"})[0].(*appsv1.StatefulSet)
	leader := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "lws-0", UID: "leader", Controller: new(true)}
	adoption := plan.Adoption{Orphan: *plan.OrphanOf(orphan), Owner: leader}
	for name, c := range map[string]struct {
		adoptions []plan.Adoption
		answer    error
		want      int
	}{
		"nothing is to be adopted": {},
		"the adoption is denied": {
			adoptions: []plan.Adoption{adoption}, answer: apierrors.NewForbidden(appsv1.Resource("statefulsets"), "lws-0", errors.New("denied")), want: 4,
		},
		"the adoption is undone": {adoptions: []plan.Adoption{adoption}, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			kube, patches := fake.NewClientset(orphan), 0
			kube.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				patches++
				stored := orphan.DeepCopy()
				stored.ResourceVersion = "7"
				return true, stored, c.answer
			})
			owner, now := refusedOwner(), clocktesting.NewFakePassiveClock(time.Now())
			s, reads, lists := syncerOf(owner, kube, now), 0, 0
			sets := s.deps.Sets
			s.deps.Sets = func(namespace string) children.LiveOwnerClient[*leaderworkersetv1.LeaderWorkerSet] {
				return countingSets{sets(namespace), &reads}
			}
			s.deps.Leaders = func(context.Context, cache.ObjectName) ([]Child, error) {
				lists++
				return []Child{{Ref: plan.Ref{Name: "lws-0", UID: "leader"}}}, nil
			}
			var err error
			for range 300 {
				now.SetTime(now.Now().Add(time.Second))
				_, err = s.Apply(t.Context(), &plan.Observed{Set: owner, Now: metav1.NewTime(now.Now())}, plan.Plan{Adopt: c.adoptions})
			}
			if patches != c.want || reads != c.want || lists != c.want {
				t.Errorf("%d patches, %d reads of the set and %d lists of leaders, want %d each", patches, reads, lists, c.want)
			}
			if (err != nil) != (c.want > 0) {
				t.Errorf("the last pass: %v", err)
			}
		})
	}
}
