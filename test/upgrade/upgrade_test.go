// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade replaces the programs of a cluster in which sets run with those of another version. hack/upgrade.sh builds both and
// runs it; it is not one of the suites, because it needs an earlier commit.
package upgrade

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

var (
	from = flag.String("from", "", "directory with the earlier programs")
	to   = flag.String("to", "", "directory with the later programs")
)

const (
	sets        = 20
	jobs        = 3
	waitTimeout = 2 * time.Minute
	// watched is how long nothing may change after an upgrade. The garbage collector acts within 20 s, and a resync of the
	// controller takes less.
	watched = 45 * time.Second
	outcome = "jobset-apiserver.io/kwok-outcome"
)

func TestMain(m *testing.M) {
	flag.Parse()
	suite.Main("upgrade", func() (int, error) {
		if *from == "" || *to == "" {
			return 0, fmt.Errorf("-from and -to must name directories with jobset-apiserver and jobset-controller: use hack/upgrade.sh")
		}
		return m.Run(), nil
	})
}

// upgraded is a cluster whose programs are replaced.
type upgraded struct {
	*localcluster.Cluster
	*framework.Clients
}

// up runs the programs of a directory instead of those that run.
func (u *upgraded) up(t *testing.T, programs string) {
	t.Helper()
	u.Env = []string{"CLUSTER_BIN=" + programs, "CLUSTER_APISERVER_ARGS=" + localcluster.ShortShutdown}
	if err := u.Script("up"); err != nil {
		t.Fatal(err)
	}
}

// TestUpgrade replaces both programs under running sets by later ones, and these by the earlier ones again.
func TestUpgrade(t *testing.T) {
	cluster, err := localcluster.New(".cluster-upgrade", "")
	if err != nil {
		t.Fatal(err)
	}
	u := &upgraded{Cluster: cluster}
	if err := u.Stop(true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Stop(!t.Failed()); err != nil {
			t.Error(err)
		}
	})
	u.up(t, *from)
	config, err := u.Config()
	if err != nil {
		t.Fatal(err)
	}
	if u.Clients, err = framework.NewClients(config); err != nil {
		t.Fatal(err)
	}
	u.begin(t)
	before := u.state(t)
	for _, directory := range []string{*to, *from, *to} {
		u.up(t, directory)
		u.unchanged(t, directory, before)
	}
	u.complete(t)
}

// begin starts sets and a sequence, whose pods run until they are released. One set asks for exclusive placement, which
// the earlier programs may not know or have turned off.
func (u *upgraded) begin(t *testing.T) {
	t.Helper()
	for i := range sets {
		js := builders.JobSet(fmt.Sprintf("train-%d", i), builders.WithJobs("workers", jobs, 1))
		template := &js.Spec.ReplicatedJobs[0].Template.Spec.Template
		template.Annotations = map[string]string{outcome: "running"}
		if i == 0 {
			js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "jobset-apiserver.io/rack"}
		}
		if _, err := u.JobSets.JobsetV1alpha2().JobSets(js.Namespace).Create(t.Context(), js, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // the others may be in its way if the earlier programs place its Jobs, and they do not
			framework.Eventually(t, waitTimeout, "the pods with exclusive placement run", func(ctx context.Context) error { return u.run(ctx, jobs) })
		}
	}
	sequence := &batchv1alpha1.SequentialJob{
		ObjectMeta: metav1.ObjectMeta{Name: "sequence", Namespace: builders.Namespace},
		Spec: batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{{Name: "first", Image: "busybox"}, {Name: "second", Image: "busybox"}},
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{outcome: "running"}}}},
	}
	if _, err := u.JobSets.BatchV1alpha1().SequentialJobs(builders.Namespace).Create(t.Context(), sequence, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, waitTimeout, "all pods are ready, and that is in the status", func(ctx context.Context) error {
		if err := u.run(ctx, sets*jobs+1); err != nil {
			return err
		}
		list, err := u.JobSets.JobsetV1alpha2().JobSets(builders.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if status := list.Items[i].Status.ReplicatedJobsStatus; len(status) != 1 || status[0].Ready != jobs {
				return fmt.Errorf("%s has status %+v", list.Items[i].Name, status)
			}
		}
		job, err := u.Kube.BatchV1().Jobs(builders.Namespace).Get(ctx, "sequence-0", metav1.GetOptions{})
		if err != nil || ptr.Deref(job.Status.Ready, 0) != 1 {
			return fmt.Errorf("the Job of the sequence has status %+v (%w)", job.Status, err)
		}
		return nil
	})
}

// run returns an error unless so many pods run.
func (u *upgraded) run(ctx context.Context, want int) error {
	pods, err := u.Kube.CoreV1().Pods(builders.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil {
		return err
	}
	if len(pods.Items) != want {
		return fmt.Errorf("%d pods run, want %d", len(pods.Items), want)
	}
	return nil
}

// state is what an upgrade must not change: of Jobs and pods each version, of what we serve the identity and the generation.
func (u *upgraded) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	jobs, err := u.Kube.BatchV1().Jobs(builders.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Items {
		state["job/"+jobs.Items[i].Name] = string(jobs.Items[i].UID) + "@" + jobs.Items[i].ResourceVersion
	}
	pods, err := u.Kube.CoreV1().Pods(builders.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		state["pod/"+pods.Items[i].Name] = string(pods.Items[i].UID) + "@" + pods.Items[i].ResourceVersion
	}
	list, err := u.JobSets.JobsetV1alpha2().JobSets(builders.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		js := &list.Items[i]
		state["jobset/"+js.Name] = fmt.Sprintf("%s generation %d restarts %d placed %t", js.UID, js.Generation, js.Status.Restarts, js.Status.Placement != nil)
	}
	sequence, err := u.JobSets.BatchV1alpha1().SequentialJobs(builders.Namespace).Get(t.Context(), "sequence", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	state["sequence"] = fmt.Sprintf("%s generation %d, attempts %d", sequence.UID, sequence.Generation, sequence.Status.Steps[0].Attempts)
	return state
}

// unchanged looks for a while.
func (u *upgraded) unchanged(t *testing.T, what string, want map[string]string) {
	t.Helper()
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(time.Second) {
		if diff := cmp.Diff(want, u.state(t)); diff != "" {
			t.Fatalf("%s (-before +after):\n%s", what, diff)
		}
	}
	t.Logf("%s: %d objects unchanged", what, len(want))
}

// complete lets all pods succeed and waits until the sets are completed: the programs still do their work.
func (u *upgraded) complete(t *testing.T) {
	t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"` + outcome + `":"succeeded"}}}`)
	pods, err := u.Kube.CoreV1().Pods(builders.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if _, err := u.Kube.CoreV1().Pods(builders.Namespace).Patch(t.Context(), pods.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, waitTimeout, "all sets are completed and the sequence goes on", func(ctx context.Context) error {
		list, err := u.JobSets.JobsetV1alpha2().JobSets(builders.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var open []string
		for i := range list.Items {
			if list.Items[i].Status.TerminalState != string(jobsetv1alpha2.JobSetCompleted) {
				open = append(open, list.Items[i].Name)
			}
		}
		sequence, err := u.JobSets.BatchV1alpha1().SequentialJobs(builders.Namespace).Get(ctx, "sequence", metav1.GetOptions{})
		if err != nil || len(open) > 0 || ptr.Deref(sequence.Status.Progress.CurrentIndex, 0) != 1 {
			return fmt.Errorf("not completed: %s; sequence %+v (%w)", strings.Join(open, " "), sequence.Status.Progress, err)
		}
		return nil
	})
}
