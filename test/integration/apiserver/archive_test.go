// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	typedarchive "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// runsOf returns the client for the runs of the namespace of a test.
func runsOf(t *testing.T, e *env) typedarchive.RunInterface {
	t.Helper()
	return protobufClients(t, e.config).ArchiveV1alpha1().Runs(e.namespace)
}

// started creates a set with a secret in its environment, and writes the status that the controller writes when it runs.
func (e *env) started(t *testing.T, name string) *jobsetv1alpha2.JobSet {
	t.Helper()
	set := e.create(t, jobSet(name, func(js *jobsetv1alpha2.JobSet) {
		js.Labels = map[string]string{"team": "red"}
		container := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
		container.Env = []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2"}}
	}))
	now := metav1.NowMicro()
	set.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: &now,
		CreateTime: &now, ReadyTime: &now}}
	set, err := e.typed.UpdateStatus(t.Context(), set, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// end writes the status that the controller writes when a set has failed because of a pod on a node.
func (e *env) end(t *testing.T, set *jobsetv1alpha2.JobSet) {
	t.Helper()
	now := metav1.NowMicro()
	attempt := &set.Status.Attempts[0]
	attempt.EndTime, attempt.Outcome, attempt.EndReason = &now, jobsetv1alpha2.OutcomeFailed, "a Job failed"
	attempt.FirstCause = &jobsetv1alpha2.FailureCause{Job: set.Name + "-workers-0", Pod: "p", Node: "node-7", Container: "c", ExitCode: ptr.To[int32](137),
		Reason: "OOMKilled"}
	set.Status.TerminalState = string(jobsetv1alpha2.JobSetFailed)
	set.Status.Conditions = []metav1.Condition{{Type: string(jobsetv1alpha2.JobSetFailed), Status: metav1.ConditionTrue, Reason: "FailedJobs",
		Message: "a Job failed", LastTransitionTime: metav1.Now()}}
	if _, err := e.typed.UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits until a selector selects exactly the runs of the sets, and returns them.
func await(t *testing.T, runs typedarchive.RunInterface, selector string, sets ...string) (found []archivev1alpha1.Run) {
	t.Helper()
	framework.Eventually(t, "has the runs of "+strings.Join(sets, ", "), func(ctx context.Context) error {
		list, err := runs.List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Object.Name)
		}
		if diff := cmp.Diff(sets, names); diff != "" {
			return fmt.Errorf("runs, the newest first (-want +got):\n%s", diff)
		}
		found = list.Items
		return nil
	})
	return found
}

// TestArchive follows runs behind a real kube-apiserver: of a set that failed and of one that was deleted while it ran, through reads, a restart of
// the server, and the deletion of a run.
func TestArchive(t *testing.T) {
	flags := append(framework.Embedded(framework.ShortDir(t)), "--archive-database=sqlite")
	server := plane.StartServer(t, flags...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	runs := runsOf(t, e)

	e.end(t, e.started(t, "fails"))
	failed := await(t, runs, "", "fails")[0]
	if failed.State != archivev1alpha1.RunFailed || failed.User == "" || failed.Labels["team"] != "red" || failed.Attempts != 1 || len(failed.Failures) != 1 ||
		failed.Failures[0].Node != "node-7" || failed.Details != nil {
		t.Errorf("the list has %+v", failed)
	}
	full, err := runs.Get(t.Context(), failed.Name, metav1.GetOptions{})
	if err != nil || full.Details == nil {
		t.Fatalf("getting the run: %v, %+v", err, full)
	}
	if spec := string(full.Details.Spec.Raw); strings.Contains(spec, "hunter2") || !strings.Contains(spec, `"TOKEN"`) {
		t.Errorf("the spec of the run is %s", spec)
	}
	if err := e.typed.Delete(t.Context(), "fails", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	e.started(t, "runs")
	if err := e.typed.Delete(t.Context(), "runs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deleted := await(t, runs, "", "runs", "fails")[0]
	if deleted.State != archivev1alpha1.RunDeleted || deleted.EndUser == "" || deleted.EndTime.IsZero() {
		t.Errorf("the run of the deleted set is %+v", deleted)
	}
	await(t, runs, "node=node-7,cause=OOMKilled", "fails")
	await(t, runs, "state=Deleted,endedAfter="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "runs")

	e.started(t, "never-ended")
	if err := runs.Delete(t.Context(), failed.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("deleting a run with another UID: %v", err)
	}
	if err := runs.Delete(t.Context(), failed.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	server.Stop(t)
	e.config = plane.StartServer(t, flags...).Config(t)
	await(t, runsOf(t, e), "", "runs")
}

// TestArchiveOff checks what users read who ask a server without an archive for runs.
func TestArchiveOff(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	e.end(t, e.started(t, "fails"))
	_, err := runsOf(t, e).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "--archive-database") {
		t.Errorf("got %v, want that the archive is off", err)
	}
	if err := e.typed.Delete(t.Context(), "fails", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
