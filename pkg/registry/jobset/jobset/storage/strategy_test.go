// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func strategies(gates gates.Gates) (jobset.Strategy, jobset.StatusStrategy) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	main := jobset.NewStrategy(scheme, gates, func() time.Time { return noon })
	return main, jobset.NewStatusStrategy(main)
}

func inNamespace() context.Context {
	return request.WithNamespace(context.Background(), builders.Namespace)
}

func plain(change ...func(*api.JobSet)) *api.JobSet {
	js := builders.Hub("train", builders.WithHubJobs("workers", 2, 4))
	js.UID = "1"
	for _, f := range change {
		f(js)
	}
	return js
}

func TestCreateDropsStatusAndStartsAtGenerationOne(t *testing.T) {
	main, _ := strategies(gates.Gates{})
	js := plain(func(js *api.JobSet) {
		js.CreationTimestamp = metav1.Now()
		js.Generation = 7
		js.Status = api.JobSetStatus{Restarts: 3, TerminalState: "Failed"}
	})
	if err := rest.BeforeCreate(main, inNamespace(), js); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api.JobSetStatus{}, js.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if js.Generation != 1 {
		t.Errorf("generation is %d, want 1", js.Generation)
	}
}

// TestSuspendByEditRecordsUser: the name comes from the request. What the user writes into the status is not taken.
func TestSuspendByEditRecordsUser(t *testing.T) {
	main, _ := strategies(gates.Gates{})
	prev := plain(func(js *api.JobSet) {
		js.Status.Attempts = []api.Attempt{{Number: 1, Trigger: api.TriggerStart, Scope: api.ScopeJobSet, RequestTime: ptr.To(metav1.NewMicroTime(noon.Add(-time.Hour)))}}
	})
	next := prev.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	next.Status.Attempts[0].EndUser, next.Status.Attempts[0].EndReason = "mallory", "forged"
	want := *prev.Status.DeepCopy()
	want.Attempts[0].EndTime, want.Attempts[0].Outcome, want.Attempts[0].EndUser = ptr.To(metav1.NewMicroTime(noon)), api.OutcomeSuspended, "ada"
	ctx := request.WithUser(inNamespace(), &user.DefaultInfo{Name: "ada"})
	if err := rest.BeforeUpdate(main, ctx, next, prev); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, next.Status); diff != "" {
		t.Errorf("status after suspending (-want +got):\n%s", diff)
	}

	resumed := next.DeepCopy()
	resumed.Spec.Suspend = nil
	want.Attempts = append(want.Attempts, api.Attempt{Number: 2, Trigger: api.TriggerResume, Scope: api.ScopeJobSet, User: "bob", RequestTime: ptr.To(metav1.NewMicroTime(noon))})
	ctx = request.WithUser(inNamespace(), &user.DefaultInfo{Name: "bob"})
	if err := rest.BeforeUpdate(main, ctx, resumed, next); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, resumed.Status); diff != "" {
		t.Errorf("status after resuming (-want +got):\n%s", diff)
	}
}

func TestGeneration(t *testing.T) {
	cases := map[string]struct {
		change func(*api.JobSet)
		want   int64
	}{
		"stays when nothing changes":          {change: func(*api.JobSet) {}, want: 4},
		"stays when labels change":            {change: func(js *api.JobSet) { js.Labels = map[string]string{"a": "b"} }, want: 4},
		"stays when the body has a status":    {change: func(js *api.JobSet) { js.Status.Restarts = 9 }, want: 4},
		"cannot be set":                       {change: func(js *api.JobSet) { js.Generation = 99 }, want: 4},
		"stays when an empty list is sent":    {change: func(js *api.JobSet) { js.Spec.VolumeClaimPolicies = []api.VolumeClaimPolicy{} }, want: 4},
		"stays when pruned metadata is sent":  {change: func(js *api.JobSet) { js.Spec.ReplicatedJobs[0].Template.GenerateName = "x" }, want: 4},
		"grows when the set is suspended":     {change: func(js *api.JobSet) { js.Spec.Suspend = ptr.To(true) }, want: 5},
		"grows when false is said for absent": {change: func(js *api.JobSet) { js.Spec.Suspend = ptr.To(false) }, want: 5},
		"grows when a time to live is set":    {change: func(js *api.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) }, want: 5},
		"grows by one however much is changed": {change: func(js *api.JobSet) {
			js.Spec.Suspend, js.Spec.TTLSecondsAfterFinished = ptr.To(true), ptr.To[int32](1)
		}, want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, _ := strategies(gates.Gates{})
			prev := plain(func(js *api.JobSet) { js.Generation, js.Status.Restarts = 4, 1 })
			next := prev.DeepCopy()
			tc.change(next)
			if err := rest.BeforeUpdate(main, inNamespace(), next, prev); err != nil {
				t.Fatal(err)
			}
			if next.Generation != tc.want {
				t.Errorf("generation is %d, want %d", next.Generation, tc.want)
			}
			if diff := cmp.Diff(prev.Status, next.Status); diff != "" {
				t.Errorf("the status changed:\n%s", diff)
			}
		})
	}
}

func TestStatusWriteTakesNothingElse(t *testing.T) {
	_, status := strategies(gates.Gates{})
	prev := plain(func(js *api.JobSet) { js.Generation = 4 })
	next := prev.DeepCopy()
	next.Labels, next.Finalizers, next.OwnerReferences = map[string]string{"a": "b"}, []string{"acme.io/x"}, []metav1.OwnerReference{{Name: "x"}}
	next.Spec = api.JobSetSpec{}
	next.Status = api.JobSetStatus{Restarts: 2}
	next.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1"}}

	want := prev.DeepCopy()
	want.Status, want.ManagedFields = next.Status, next.ManagedFields
	if err := rest.BeforeUpdate(status, inNamespace(), next, prev); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestStatusIsValidated(t *testing.T) {
	_, status := strategies(gates.Gates{InPlaceRestart: true})
	prev := plain()
	next := prev.DeepCopy()
	next.Status.CurrentInPlaceRestartAttempt = ptr.To[int32](-1)
	errs := status.ValidateUpdate(inNamespace(), next, prev)
	if len(errs) != 1 || errs[0].Field != "status.currentInPlaceRestartAttempt" {
		t.Errorf("got %v, want one error at status.currentInPlaceRestartAttempt", errs)
	}
	if warnings := status.WarningsOnUpdate(inNamespace(), plain(func(js *api.JobSet) { js.Spec.StartupPolicy.StartupPolicyOrder = api.InOrder }), prev); warnings != nil {
		t.Errorf("a status write warns of the spec: %v", warnings)
	}
}

func TestStrategyFacts(t *testing.T) {
	main, status := strategies(gates.Gates{})
	ctx := inNamespace()
	got := fmt.Sprintf("namespaced %v, create on update %v, unconditional update %v, status too %v %v, garbage collection %v",
		main.NamespaceScoped(), main.AllowCreateOnUpdate(ctx), main.AllowUnconditionalUpdate(ctx),
		status.AllowCreateOnUpdate(ctx), status.AllowUnconditionalUpdate(ctx), main.DefaultGarbageCollectionPolicy(ctx))
	want := "namespaced true, create on update false, unconditional update false, status too false false, garbage collection DeleteDependents"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	reset := func(fields map[fieldpath.APIVersion]*fieldpath.Set) string {
		return fields["jobset.x-k8s.io/v1alpha2"].String()
	}
	if diff := cmp.Diff([]string{".status", ".metadata\n.spec"}, []string{reset(main.GetResetFields()), reset(status.GetResetFields())}); diff != "" {
		t.Errorf("reset fields (-want +got):\n%s", diff)
	}
}

func TestTemplateMetadataIsPruned(t *testing.T) {
	dirty := metav1.ObjectMeta{
		Name: "n", Namespace: "ns", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Finalizers: []string{"acme.io/f"},
		GenerateName: "g", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.Now(), DeletionTimestamp: ptr.To(metav1.Now()),
		DeletionGracePeriodSeconds: ptr.To[int64](1), OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	want := metav1.ObjectMeta{
		Name: "n", Namespace: "ns", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Finalizers: []string{"acme.io/f"},
	}
	soil := func(js *api.JobSet) {
		js.Spec.ReplicatedJobs[0].Template.ObjectMeta = dirty
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.ObjectMeta = dirty
		js.Spec.VolumeClaimPolicies = []api.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: dirty}}}}
	}
	main, _ := strategies(gates.Gates{})
	created, updated := plain(soil), plain(soil)
	main.PrepareForCreate(inNamespace(), created)
	main.PrepareForUpdate(inNamespace(), updated, plain())
	for verb, js := range map[string]*api.JobSet{"create": created, "update": updated} {
		rj := js.Spec.ReplicatedJobs[0]
		for level, got := range map[string]metav1.ObjectMeta{
			"Job": rj.Template.ObjectMeta, "pod": rj.Template.Spec.Template.ObjectMeta, "claim": js.Spec.VolumeClaimPolicies[0].Templates[0].ObjectMeta,
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, metadata of the %s (-want +got):\n%s", verb, level, diff)
			}
		}
	}
}
