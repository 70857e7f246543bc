// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// orphan returns a Job that a former set has left behind.
func orphan(js *jobsetv1alpha2.JobSet, uid string, index int, change ...func(*batchv1.Job)) *batchv1.Job {
	job := childJob(js, index)
	job.OwnerReferences, job.Labels[jobsetv1alpha2.JobSetUIDKey] = nil, uid
	for _, c := range change {
		c(job)
	}
	return job
}

func ended(job *batchv1.Job) {
	job.Status = batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
}

func suspended(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }

func named(name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Name, job.UID = name, types.UID("uid-"+name) }
}

func controlled(job *batchv1.Job) {
	job.OwnerReferences = []metav1.OwnerReference{{Kind: "JobSet", Name: "train", UID: "former", Controller: ptr.To(true)}}
}

// conflict is a set that waits for names that Jobs of others have.
func conflict(jobs ...func(js *jobsetv1alpha2.JobSet) *batchv1.Job) *Evidence {
	return healthy(without, has(jobsetv1alpha2.ChildNameConflict, "JobNameTaken", "a job named train-workers-0 already exists and does not belong to the jobset"), func(e *Evidence) {
		for _, f := range jobs {
			job := f(e.JobSet)
			e.FormerJobs = append(e.FormerJobs, job)
			if job.Name == "train-workers-0" {
				e.TakenJobs[job.Name] = job
			}
		}
	})
}

func left(uid string, index int, change ...func(*batchv1.Job)) func(*jobsetv1alpha2.JobSet) *batchv1.Job {
	return func(js *jobsetv1alpha2.JobSet) *batchv1.Job { return orphan(js, uid, index, change...) }
}

func TestRenderOrphanedJobs(t *testing.T) {
	var out strings.Builder
	for _, e := range []*Evidence{
		conflict(left("former", 0), left("former", 1, ended), left("former", 2, named("train-others-0"), suspended)),
		conflict(left("former", 0, ended), left("older", 1)),
		conflict(left("former", 0), left("former", 1, controlled)),
	} {
		if err := render(&out, cli.JobSet, Diagnose(e), cli.Terminal{Width: 120}, now); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n")
	}
	golden.Compare(t, "why-orphans.txt", out.String())
}

func TestManyFormerSets(t *testing.T) {
	var jobs []func(*jobsetv1alpha2.JobSet) *batchv1.Job
	for n := range maxFormer + 2 {
		jobs = append(jobs, left(fmt.Sprintf("former-%d", n), n%2))
	}
	f := Diagnose(conflict(jobs...)).Findings[0]
	deletions := 0
	for _, command := range f.Commands {
		if strings.Contains(command, " delete jobs ") {
			deletions++
		}
	}
	if last := f.Evidence[maxFormer+1]; deletions != maxFormer || !strings.HasPrefix(last.Text, "2 former sets more") {
		t.Errorf("%d deletions, and %q", deletions, last.Text)
	}
}

// TestCommandDeletesOrphansOnly carries out the commands for a namespace that has Jobs of all kinds.
func TestCommandDeletesOrphansOnly(t *testing.T) {
	e := conflict()
	js := e.JobSet
	e.Jobs = []*batchv1.Job{
		orphan(js, "former", 0), orphan(js, "former", 1, ended), orphan(js, "former", 2, named("train-others-0")),
		orphan(js, "former", 2, named("etl-workers-0"), func(job *batchv1.Job) { job.Labels[jobsetv1alpha2.JobSetNameKey] = "etl" }),
		orphan(js, string(js.UID), 2, named("train-workers-7"), func(job *batchv1.Job) {
			job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))}
		}),
		orphan(js, string(js.UID), 2, named("released")),
		orphan(js, "unneeded", 2, named("train-gone-0")),
		orphan(js, "controlled", 2, named("train-gone-1"), controlled),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly"}},
	}
	w := newEnv(t, e)
	read := w.load(t)
	read.Now = now
	d := newDiagnosis(read)
	commands := Diagnose(read).Findings[0].Commands
	want := "kubectl -n team delete jobs -l jobset.sigs.k8s.io/jobset-name=train,jobset.sigs.k8s.io/jobset-uid=former  # stops 2 jobs that may still run"
	if commands[0] != want {
		t.Errorf("commands %q, want first %q", commands, want)
	}
	var selected []string
	for _, f := range d.blocking() {
		list, err := w.kube.BatchV1().Jobs("team").List(context.Background(), metav1.ListOptions{LabelSelector: f.selector("train")})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			selected = append(selected, list.Items[i].Name)
		}
	}
	if diff := cmp.Diff([]string{"train-others-0", "train-workers-0", "train-workers-1"}, selected); diff != "" {
		t.Errorf("selected Jobs (-want +got):\n%s", diff)
	}
}

// TestCommandSparesControlledJobs names the Jobs where a selector would match more than them.
func TestCommandSparesControlledJobs(t *testing.T) {
	deleting := func(job *batchv1.Job) { job.DeletionTimestamp = ptr.To(before(time.Second)) }
	got := Diagnose(conflict(left("former", 0), left("former", 1, controlled), left("former", 2, named("train-others-0"), deleting))).Findings[0].Commands[0]
	if want := "kubectl -n team delete jobs train-workers-0  # stops 1 job that may still run"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
}
