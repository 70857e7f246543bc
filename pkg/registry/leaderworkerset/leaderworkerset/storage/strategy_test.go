// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

var noon = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newStrategy() strategy.Strategy {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return strategy.NewStrategy(scheme, func() time.Time { return noon })
}

// set reads a set of the name and the spec, with defaults.
func set(t *testing.T, name, spec string) *leaderworkerset.LeaderWorkerSet {
	t.Helper()
	versioned := &v1.LeaderWorkerSet{}
	if err := yaml.UnmarshalStrict([]byte(spec), &versioned.Spec); err != nil {
		t.Fatal(err)
	}
	versioned.Name, versioned.Namespace = name, "team"
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(versioned)
	hub := &leaderworkerset.LeaderWorkerSet{}
	if err := scheme.Convert(versioned, hub, nil); err != nil {
		t.Fatal(err)
	}
	return hub
}

const simple = "{leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: a, image: b}]}}}}"

func asStored(t *testing.T) *leaderworkerset.LeaderWorkerSet {
	t.Helper()
	lws := set(t, "a", simple)
	lws.Generation, lws.UID, lws.ResourceVersion = 4, "u", "7"
	lws.Status = leaderworkerset.LeaderWorkerSetStatus{
		Replicas: 1, ReadyReplicas: 1, HPAPodSelector: "x=y", LastAction: &leaderworkerset.LastAction{Action: leaderworkerset.ActionRestart},
	}
	return lws
}

func TestPrepareForCreate(t *testing.T) {
	lws := asStored(t)
	newStrategy().PrepareForCreate(t.Context(), lws)
	if diff := cmp.Diff(leaderworkerset.LeaderWorkerSetStatus{}, lws.Status); diff != "" || lws.Generation != 1 {
		t.Errorf("generation %d, status (-want +got):\n%s", lws.Generation, diff)
	}
}

// What the schema of upstream would prune is dropped, on creation and on update.
func TestTemplatesAreStoredAsPublished(t *testing.T) {
	full := metav1.ObjectMeta{
		Name: "n", Namespace: "s", GenerateName: "g", UID: "u", ResourceVersion: "1", Generation: 3, CreationTimestamp: metav1.Now(),
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	kept := metav1.ObjectMeta{Name: "n", Namespace: "s", Labels: full.Labels, Annotations: full.Annotations, Finalizers: full.Finalizers}
	for name, prepare := range map[string]func(*leaderworkerset.LeaderWorkerSet){
		"create": func(lws *leaderworkerset.LeaderWorkerSet) { newStrategy().PrepareForCreate(t.Context(), lws) },
		"update": func(lws *leaderworkerset.LeaderWorkerSet) {
			newStrategy().PrepareForUpdate(t.Context(), lws, asStored(t))
		},
	} {
		lws := set(t, "a", simple)
		template := &lws.Spec.LeaderWorkerTemplate
		template.RestartPolicy = leaderworkerset.RestartPolicyDefault
		template.WorkerTemplate.ObjectMeta = *full.DeepCopy()
		template.LeaderTemplate = &corev1.PodTemplateSpec{ObjectMeta: *full.DeepCopy()}
		template.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: *full.DeepCopy()}}
		prepare(lws)
		for what, got := range map[string]metav1.ObjectMeta{
			"workerTemplate": template.WorkerTemplate.ObjectMeta, "leaderTemplate": template.LeaderTemplate.ObjectMeta, "claim": template.VolumeClaimTemplates[0].ObjectMeta,
		} {
			if diff := cmp.Diff(kept, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, what, diff)
			}
		}
		if got := template.VolumeClaimTemplates[0].TypeMeta; got != (metav1.TypeMeta{}) {
			t.Errorf("%s: the claim has the kind %v", name, got)
		}
		if template.RestartPolicy != leaderworkerset.RestartPolicyNone {
			t.Errorf("%s: the restart policy is %s", name, template.RestartPolicy)
		}
	}
}

func TestPrepareForUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*leaderworkerset.LeaderWorkerSet)
		want   int64
	}{
		"nothing":  {func(*leaderworkerset.LeaderWorkerSet) {}, 4},
		"a label":  {func(lws *leaderworkerset.LeaderWorkerSet) { lws.Labels = map[string]string{"a": "b"} }, 4},
		"a status": {func(lws *leaderworkerset.LeaderWorkerSet) { lws.Status = leaderworkerset.LeaderWorkerSetStatus{} }, 4},
		"metadata of a template that is dropped": {func(lws *leaderworkerset.LeaderWorkerSet) {
			lws.Spec.LeaderWorkerTemplate.WorkerTemplate.GenerateName = "x"
		}, 4},
		"replicas": {func(lws *leaderworkerset.LeaderWorkerSet) { lws.Spec.Replicas = ptr.To[int32](9) }, 5},
		"a template": {func(lws *leaderworkerset.LeaderWorkerSet) {
			lws.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "c"
		}, 5},
	} {
		next := asStored(t)
		tc.change(next)
		newStrategy().PrepareForUpdate(t.Context(), next, asStored(t))
		if diff := cmp.Diff(asStored(t).Status, next.Status); diff != "" || next.Generation != tc.want {
			t.Errorf("%s: generation %d, want %d; status (-want +got):\n%s", name, next.Generation, tc.want, diff)
		}
	}
}

// A stored policy Default cannot exist, so that applying it again changes nothing.
func TestDefaultPolicyIsAppliedTwice(t *testing.T) {
	old, next := asStored(t), asStored(t)
	old.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkerset.RestartPolicyNone
	next.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkerset.RestartPolicyDefault
	newStrategy().PrepareForUpdate(t.Context(), next, old)
	if next.Generation != 4 {
		t.Errorf("the generation is %d, want 4", next.Generation)
	}
}

func TestEditsOfPausedAreRecorded(t *testing.T) {
	next := asStored(t)
	next.Spec.Paused = ptr.To(true)
	newStrategy().PrepareForUpdate(request.WithUser(t.Context(), &user.DefaultInfo{Name: "ada"}), next, asStored(t))
	want := &leaderworkerset.LastAction{Action: leaderworkerset.ActionPause, User: "ada", Time: ptr.To(metav1.NewMicroTime(noon))}
	if diff := cmp.Diff(want, next.Status.LastAction); diff != "" {
		t.Errorf("the last action (-want +got):\n%s", diff)
	}
}

func TestStatusStrategyTakesTheStatusAlone(t *testing.T) {
	next := asStored(t)
	next.Labels, next.Spec.Replicas, next.Generation = map[string]string{"a": "b"}, ptr.To[int32](9), 9
	next.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	next.Status = leaderworkerset.LeaderWorkerSetStatus{Replicas: 3, LastAction: &leaderworkerset.LastAction{Action: leaderworkerset.ActionPause}}
	strategy.NewStatusStrategy(newStrategy()).PrepareForUpdate(t.Context(), next, asStored(t))
	want := asStored(t)
	want.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	want.Status = leaderworkerset.LeaderWorkerSetStatus{Replicas: 3, LastAction: want.Status.LastAction}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
}

func TestActionStrategyTakesWhatActionsChange(t *testing.T) {
	next := asStored(t)
	next.Labels, next.Spec.Replicas = map[string]string{"a": "b"}, ptr.To[int32](9)
	next.Spec.Paused = ptr.To(true)
	next.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](3)
	next.Spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkerset.SubdomainUniquePerReplica)
	next.Status.Restart = &leaderworkerset.RequestedRestart{All: true}
	want := asStored(t)
	want.Generation++
	want.Spec.Paused = ptr.To(true)
	want.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](3)
	want.Spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkerset.SubdomainUniquePerReplica)
	want.Status.Restart = &leaderworkerset.RequestedRestart{All: true}
	s := strategy.NewActionStrategy(newStrategy())
	s.PrepareForUpdate(t.Context(), next, asStored(t))
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
	next.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](0)
	if errs := s.ValidateUpdate(t.Context(), next, asStored(t)); len(errs) != 1 || errs[0].Field != "spec.leaderWorkerTemplate.size" {
		t.Errorf("a size of 0: %v", errs)
	}
}

func TestUnconditionalUpdatesAreOff(t *testing.T) {
	s := newStrategy()
	if s.AllowUnconditionalUpdate(t.Context()) || s.AllowCreateOnUpdate(t.Context()) || !s.NamespaceScoped() {
		t.Error("PUT must need a resourceVersion and an object, in a namespace")
	}
}
