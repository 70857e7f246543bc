// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	applybatch "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/applyconfiguration/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
)

const team = "team"

func containerStep(name string) *applybatch.SequentialJobStepApplyConfiguration {
	return applybatch.SequentialJobStep().WithName(name).WithContainer(applycore.Container().WithName(name).WithImage("busybox"))
}

// The schema inside the apply configurations must know that steps are a map by their names.
func TestAppliersOwnSteps(t *testing.T) {
	client := fake.NewClientset().BatchV1alpha1().SequentialJobs(team)
	apply := func(manager string, steps ...*applybatch.SequentialJobStepApplyConfiguration) *v1alpha1.SequentialJob {
		t.Helper()
		config := applybatch.SequentialJob("run", team).WithSpec(applybatch.SequentialJobSpec().WithSteps(steps...))
		out, err := client.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: manager})
		if err != nil {
			t.Fatalf("apply by %s: %v", manager, err)
		}
		return out
	}
	apply("user", containerStep("a"), containerStep("b"))
	applied := apply("other", containerStep("c"))
	var names []string
	for i := range applied.Spec.Steps {
		names = append(names, applied.Spec.Steps[i].Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("steps after two managers applied their steps (-want +got):\n%s", diff)
	}
	mine, err := applybatch.ExtractSequentialJob(applied, "other")
	if err != nil {
		t.Fatal(err)
	}
	want := applybatch.SequentialJob("run", team).WithSpec(applybatch.SequentialJobSpec().WithSteps(containerStep("c")))
	if diff := cmp.Diff(want, mine); diff != "" {
		t.Errorf("what the second manager owns (-want +got):\n%s", diff)
	}
}

func TestInformersAndListers(t *testing.T) {
	sj := &v1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "a"}}
	group := &v1alpha1.PodReadinessGroup{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "b"}}
	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(sj, group), 0)
	informers := factory.Batch().V1alpha1()
	synced := []cache.InformerSynced{informers.SequentialJobs().Informer().HasSynced, informers.PodReadinessGroups().Informer().HasSynced}
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), synced...) {
		t.Fatal("the caches are not filled")
	}
	if got, err := informers.SequentialJobs().Lister().SequentialJobs(team).Get("a"); err != nil || got.Name != "a" {
		t.Errorf("the lister returns %v, %v", got, err)
	}
	if got, err := informers.PodReadinessGroups().Lister().PodReadinessGroups(team).Get("b"); err != nil || got.Name != "b" {
		t.Errorf("the lister returns %v, %v", got, err)
	}
}
