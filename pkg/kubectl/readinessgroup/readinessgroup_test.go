// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readinessgroup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	groupsfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newPod(name string, phase corev1.PodPhase, labels map[string]string, job string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	if job != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job), Controller: ptr.To(true)}}
	}
	return pod
}

func newJob(name string, parallelism int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: batchv1.JobSpec{Parallelism: &parallelism}}
}

func newGroup(name string, minMember *int32) *batchv1alpha1.PodReadinessGroup {
	return &batchv1alpha1.PodReadinessGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       batchv1alpha1.PodReadinessGroupSpec{MinMember: minMember, ReadyWhen: batchv1alpha1.ReadyWhenRunning},
	}
}

func inGroup(group string) map[string]string {
	return map[string]string{batchv1alpha1.PodGroupKey: group}
}
func legacy(group string, ready bool) map[string]string {
	labels := map[string]string{batchv1alpha1.LegacyPodGroupKey: group}
	if ready {
		labels[batchv1alpha1.LegacyPodGroupReadyKey] = "true"
	}
	return labels
}

func newClients(groups []runtime.Object, objects ...runtime.Object) (*cli.Clients, *fake.Clientset, *groupsfake.Clientset) {
	kube, own := fake.NewClientset(objects...), groupsfake.NewSimpleClientset(groups...)
	return &cli.Clients{Namespace: "ns", Kube: kube, JobSets: own}, kube, own
}

// lines are the rows of a report in short.
func lines(r *Report) (all []string) {
	for i := range r.Items {
		row := &r.Items[i]
		all = append(all, fmt.Sprintf("%s %s %d %s %d/%d %d %s %t", row.Name, row.LabelPrefix[:5], row.Size, row.Source, row.Running, row.Pods, row.Ready, row.State, row.PodReadinessGroup))
	}
	return all
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestGroups(t *testing.T) {
	sized := inGroup("sized")
	sized[batchv1alpha1.PodGroupSizeKey] = "3"
	clients, _, _ := newClients(
		[]runtime.Object{newGroup("pair", ptr.To[int32](2)), newGroup("empty", nil)},
		newJob("job", 4),
		newPod("a", corev1.PodRunning, inGroup("pair"), ""), newPod("b", corev1.PodPending, inGroup("pair"), ""),
		newPod("c", corev1.PodRunning, legacy("train", true), "job"), newPod("d", corev1.PodFailed, legacy("train", false), "job"),
		newPod("e", corev1.PodSucceeded, legacy("bare", true), ""),
		newPod("f", corev1.PodRunning, sized, ""),
		newPod("g", corev1.PodRunning, legacy("pair", false), ""),
		newPod("h", corev1.PodRunning, nil, ""),
	)
	report, err := load(t.Context(), clients, "ns", "", now)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "groups", []string{
		"bare podgr 1 pods 1/1 1 Ready false",
		"empty batch 0  0/0 0 Pending true",
		"pair batch 2 minMember 1/2 0 Pending true",
		"pair podgr 2 minMember 1/1 0 Pending true",
		"sized batch 3 label 1/1 0 Pending false",
		"train podgr 4 owners 1/1 1 Degraded false",
	}, lines(report))
	diff(t, "notes", []string(nil), report.Notes)
	diff(t, "message", "1 of 4 pods run", report.Items[5].Message)
	diff(t, "time of a group with an object", now.Add(-time.Hour), report.Items[2].CreateTime.UTC())
	diff(t, "time of a group without", now.Add(-time.Minute), report.Items[5].CreateTime.UTC())
}

// TestWhatCannotBeRead has a user who may not read PodReadinessGroups and Jobs.
func TestWhatCannotBeRead(t *testing.T) {
	clients, kube, own := newClients(nil, newPod("a", corev1.PodRunning, inGroup("train"), "job"))
	own.PrependReactor("list", "podreadinessgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "podreadinessgroups"}, "", nil)
	})
	kube.PrependReactor("get", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", nil)
	})
	report, err := load(t.Context(), clients, "ns", "", now)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "groups", []string{"train batch 0  1/1 0 Pending false"}, lines(report))
	if len(report.Notes) != 2 || !strings.HasPrefix(report.Notes[0], "PodReadinessGroups are not known: ") || !strings.HasPrefix(report.Notes[1], "sizes of some groups are not known: ") {
		t.Errorf("notes %q", report.Notes)
	}
}

// TestOwnersAreBounded has more Jobs than are read.
func TestOwnersAreBounded(t *testing.T) {
	var objects []runtime.Object
	for i := range maxOwners + 1 {
		objects = append(objects, newPod(fmt.Sprint("p", i), corev1.PodRunning, inGroup("train"), fmt.Sprint("job", i)))
	}
	clients, kube, _ := newClients(nil, objects...)
	report, err := load(t.Context(), clients, "ns", "", now)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "notes", 1, len(report.Notes))
	diff(t, "requests", 2, len(kube.Actions()))
}

func TestColumns(t *testing.T) {
	terminal := cli.Terminal{ASCII: true}
	row := Row{
		Namespace: "ns", Name: "train", LabelPrefix: "batch.jobset-apiserver.io", Size: 8, Source: "owners", Pods: 7, Running: 6, Ready: 5, State: batchv1alpha1.GroupDegraded,
		Message: "6 of 8 pods run", ReadyWhen: batchv1alpha1.ReadyWhenReady, CreateTime: metav1.NewTime(now.Add(-5 * time.Minute)),
	}
	diff(t, "wide table", []string{
		"NAMESPACE  NAME   FAMILY                     SIZE  SOURCE  PODS  RUNNING  READY  STATE     AGE  READY WHEN  MESSAGE",
		"ns         train  batch.jobset-apiserver.io  8     owners  7     6        5      Degraded  5m   Ready       6 of 8 pods run",
	}, terminal.Table(columns(true, true), [][]string{row.cells(terminal, true, true, now)}))
	row.Size = 0
	diff(t, "size that is not known", "?", row.cells(terminal, false, false, now)[2])
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"a b":     "NAME: must be one group, not 2",
		"a/b":     `NAME: must be the name of a group, which is the value of a label, not "a/b"`,
		"-o nice": "unable to match a printer",
	} {
		cmd := NewCommand(cli.NewFactory(genericiooptions.NewTestIOStreamsDiscard()))
		cmd.SetArgs(strings.Fields(args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}
