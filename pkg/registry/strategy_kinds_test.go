// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	podreadinessgroups "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/podreadinessgroup"
	sequentialjobs "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
	disaggregatedsets "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
	rolescalers "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/rolescaler"
	jobsets "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	leaderworkersets "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

type object interface {
	runtime.Object
	metav1.Object
}

type mainStrategy interface {
	rest.RESTCreateUpdateStrategy
	rest.GarbageCollectionDeleteStrategy
	rest.ResetFieldsStrategy
}

type statusStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// kind is a kind with changes of the spec and of the status from which the server derives nothing.
type kind struct {
	version      fieldpath.APIVersion
	main         mainStrategy
	status       statusStrategy
	empty        object
	changeSpec   func(object)
	changeStatus func(object)
}

func kinds() map[string]kind {
	group := podreadinessgroups.NewStrategy(nil)
	sequence := sequentialjobs.NewStrategy(nil, gates.Gates{}, time.Now)
	disaggregated := disaggregatedsets.NewStrategy(nil)
	scaler := rolescalers.NewStrategy(nil)
	set := jobsets.NewStrategy(nil, gates.Gates{}, time.Now)
	leaders := leaderworkersets.NewStrategy(nil, time.Now)
	return map[string]kind{
		"PodReadinessGroup": {
			"batch.jobset-apiserver.io/v1alpha1", group, podreadinessgroups.NewStatusStrategy(group), &batch.PodReadinessGroup{},
			func(o object) { o.(*batch.PodReadinessGroup).Spec.MinMember = ptr.To[int32](3) },
			func(o object) { o.(*batch.PodReadinessGroup).Status.Pods = 3 },
		},
		"SequentialJob": {
			"batch.jobset-apiserver.io/v1alpha1", sequence, sequentialjobs.NewStatusStrategy(sequence), &batch.SequentialJob{},
			func(o object) { o.(*batch.SequentialJob).Spec.ActiveDeadlineSeconds = ptr.To[int64](3) },
			func(o object) { o.(*batch.SequentialJob).Status.ObservedGeneration = 3 },
		},
		"DisaggregatedSet": {
			"disaggregatedset.x-k8s.io/v1", disaggregated, disaggregatedsets.NewStatusStrategy(disaggregated), &disaggregatedset.DisaggregatedSet{},
			func(o object) { o.(*disaggregatedset.DisaggregatedSet).Spec.Slices = ptr.To[int32](3) },
			func(o object) {
				o.(*disaggregatedset.DisaggregatedSet).Status.Conditions = []metav1.Condition{{Type: "Available"}}
			},
		},
		"DisaggregatedSetRoleScaler": {
			"disaggregatedset.x-k8s.io/v1", scaler, rolescalers.NewStatusStrategy(scaler), &disaggregatedset.DisaggregatedSetRoleScaler{},
			func(o object) { o.(*disaggregatedset.DisaggregatedSetRoleScaler).Spec.Replicas = 3 },
			func(o object) { o.(*disaggregatedset.DisaggregatedSetRoleScaler).Status.Replicas = 3 },
		},
		"JobSet": {
			"jobset.x-k8s.io/v1alpha2", set, jobsets.NewStatusStrategy(set), &jobset.JobSet{},
			func(o object) { o.(*jobset.JobSet).Spec.TTLSecondsAfterFinished = ptr.To[int32](3) },
			func(o object) { o.(*jobset.JobSet).Status.Restarts = 3 },
		},
		"LeaderWorkerSet": {
			"leaderworkerset.x-k8s.io/v1", leaders, leaderworkersets.NewStatusStrategy(leaders), &leaderworkerset.LeaderWorkerSet{},
			func(o object) { o.(*leaderworkerset.LeaderWorkerSet).Spec.Replicas = ptr.To[int32](3) },
			func(o object) { o.(*leaderworkerset.LeaderWorkerSet).Status.Replicas = 3 },
		},
	}
}

// created returns the object as the server stores it on create, with a label.
func (k kind) created(t *testing.T) object {
	t.Helper()
	o := copied(k.empty)
	k.main.PrepareForCreate(t.Context(), o)
	o.SetLabels(map[string]string{"a": "b"})
	return o
}

func copied(o object) object { return o.DeepCopyObject().(object) }

func TestFacts(t *testing.T) {
	for name, k := range kinds() {
		ctx := t.Context()
		got := fmt.Sprintf("namespaced %v, create on update %v, unconditional update %v, status too %v %v, garbage collection %v, reset %v, for the status %v",
			k.main.NamespaceScoped(), k.main.AllowCreateOnUpdate(ctx), k.main.AllowUnconditionalUpdate(ctx),
			k.status.AllowCreateOnUpdate(ctx), k.status.AllowUnconditionalUpdate(ctx), k.main.DefaultGarbageCollectionPolicy(ctx),
			k.main.GetResetFields(), k.status.GetResetFields())
		want := "namespaced true, create on update false, unconditional update false, status too false false, garbage collection DeleteDependents, " +
			fmt.Sprintf("reset map[%[1]s:.status], for the status map[%[1]s:.metadata\n.spec]", k.version)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCreateDropsStatusAndGeneration(t *testing.T) {
	for name, k := range kinds() {
		dirty, want := copied(k.empty), k.created(t)
		k.changeStatus(dirty)
		dirty.SetGeneration(7)
		dirty.SetLabels(want.GetLabels())
		k.main.PrepareForCreate(t.Context(), dirty)
		if diff := cmp.Diff(want, dirty); diff != "" || dirty.GetGeneration() != 1 {
			t.Errorf("%s, generation %d (-want +got):\n%s", name, dirty.GetGeneration(), diff)
		}
	}
}

func TestUpdateKeepsStatusAndCountsChanges(t *testing.T) {
	for name, k := range kinds() {
		prev := k.created(t)
		for change, want := range map[string]int64{"label": 1, "spec": 2} {
			next := copied(prev)
			next.SetLabels(nil)
			if change == "spec" {
				k.changeSpec(next)
			}
			wanted := copied(next)
			wanted.SetGeneration(want)
			k.changeStatus(next)
			k.main.PrepareForUpdate(t.Context(), next, prev)
			if diff := cmp.Diff(wanted, next); diff != "" {
				t.Errorf("%s, change of a %s (-want +got):\n%s", name, change, diff)
			}
		}
	}
}

func TestStatusUpdateTakesStatusOnly(t *testing.T) {
	for name, k := range kinds() {
		prev := k.created(t)
		want, next := copied(prev), copied(prev)
		k.changeStatus(want)
		want.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		k.changeStatus(next)
		next.SetManagedFields(want.GetManagedFields())
		k.changeSpec(next)
		next.SetLabels(nil)
		next.SetGeneration(9)
		k.status.PrepareForUpdate(t.Context(), next, prev)
		if diff := cmp.Diff(want, next); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if warnings := k.status.WarningsOnUpdate(t.Context(), next, prev); warnings != nil {
			t.Errorf("%s: warnings %q", name, warnings)
		}
	}
}
