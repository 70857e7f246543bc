// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetapply "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/applyconfiguration/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
)

const namespace = "team"

func worker(name string, replicas int32) *jobsetapply.ReplicatedJobApplyConfiguration {
	return jobsetapply.ReplicatedJob().WithName(name).WithReplicas(replicas)
}

// The schema inside the apply configurations must know lists by their keys, under both names it is looked up by: fake
// clientsets take the model name, Extract functions the Go name.
func TestApplyOwnsItemsOfLists(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset().JobsetV1alpha2().JobSets(namespace)
	apply := func(manager string, jobs ...*jobsetapply.ReplicatedJobApplyConfiguration) *v1alpha2.JobSet {
		t.Helper()
		config := jobsetapply.JobSet("run", namespace).WithSpec(jobsetapply.JobSetSpec().WithReplicatedJobs(jobs...))
		out, err := client.Apply(ctx, config, metav1.ApplyOptions{FieldManager: manager})
		if err != nil {
			t.Fatalf("apply by %s: %v", manager, err)
		}
		return out
	}
	apply("user", worker("a", 1), worker("b", 0))
	applied := apply("queue", worker("c", 3))

	var names []string
	for _, job := range applied.Spec.ReplicatedJobs {
		names = append(names, job.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("replicatedJobs after two managers applied their replicatedJobs (-want +got):\n%s", diff)
	}

	mine, err := jobsetapply.ExtractJobSet(applied, "queue")
	if err != nil {
		t.Fatalf("extracting what the second manager owns: %v", err)
	}
	want := jobsetapply.JobSet("run", namespace).WithSpec(jobsetapply.JobSetSpec().WithReplicatedJobs(worker("c", 3)))
	if diff := cmp.Diff(want, mine); diff != "" {
		t.Errorf("what the second manager owns (-want +got):\n%s", diff)
	}
}

func TestInformersAndListersSeeWhatClientsWrite(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset()
	factory := externalversions.NewSharedInformerFactory(client, 0)
	jobSets := factory.Jobset().V1alpha2().JobSets()
	lister, synced := jobSets.Lister(), jobSets.Informer().HasSynced
	created, err := client.JobsetV1alpha2().JobSets(namespace).Create(ctx, &v1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "run"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("the informer did not sync")
	}
	got, err := lister.JobSets(namespace).Get("run")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("listed (-created +got):\n%s", diff)
	}
}
