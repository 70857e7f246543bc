// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// TestFollowPicksUpNewPods follows a set in fake clusters: one pod is there, a second comes, and the set finishes.
func TestFollowPicksUpNewPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := train()
		first := newPod("leader", 0, 0, "a", with(corev1.PodSucceeded, exited("main", 0, 10)))
		kube, sets := fake.NewClientset(first), jobsetfake.NewClientset(js)
		kube.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetSubresource() != "log" {
				return false, nil, nil
			}
			return true, &runtime.Unknown{Raw: []byte("2026-03-09T12:00:00Z hello")}, nil
		})
		c := &cli.Clients{Kube: kube, JobSets: sets, Namespace: "team-a"}
		var out buffer
		f := newFollower(selection{jobIndex: -1}, corev1.PodLogOptions{}, 50, openerOf(kube), newSink(&out, &out, cli.Terminal{}))
		done := make(chan error, 1)
		go func() { done <- follow(t.Context(), c, sourceOf(setOf(js)), f) }()
		shows := func(want ...string) {
			t.Helper()
			time.Sleep(time.Minute) // which is enough for any pause
			synctest.Wait()
			if diff := cmp.Diff(want, slices.Collect(strings.Lines(out.String()))); diff != "" {
				t.Fatalf("lines (-want +got):\n%s", diff)
			}
		}
		shows("[leader-0-0] hello\n")
		second := newPod("workers", 0, 0, "b", with(corev1.PodSucceeded, exited("main", 0, 10)))
		if _, err := kube.CoreV1().Pods("team-a").Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		shows("[leader-0-0] hello\n", "[workers-0-0] hello\n")
		js = js.DeepCopy()
		js.Status.TerminalState = jobsetv1alpha2.TerminalStateCompleted
		if _, err := sets.JobsetV1alpha2().JobSets("team-a").UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		shows("[leader-0-0] hello\n", "[workers-0-0] hello\n")
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("following goes on although the set has finished")
		}
	})
}

func TestFollowEndsWhenWatchingIsForbidden(t *testing.T) {
	js := train()
	kube, sets := fake.NewClientset(), jobsetfake.NewClientset(js)
	kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, forbidden
	})
	f := newFollower(selection{jobIndex: -1}, corev1.PodLogOptions{}, 50, openerOf(kube), newSink(io.Discard, io.Discard, cli.Terminal{}))
	err := follow(t.Context(), &cli.Clients{Kube: kube, JobSets: sets, Namespace: "team-a"}, sourceOf(setOf(js)), f)
	if err == nil || !strings.Contains(err.Error(), "--follow: watching pods: ") || !errors.Is(err, forbidden) {
		t.Errorf("want the refusal, got %v", err)
	}
}
