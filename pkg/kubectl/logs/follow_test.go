// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// watched returns what is closed once a watch stands. A fake cluster does not report earlier events.
func watched(f *clienttesting.Fake, tracker clienttesting.ObjectTracker, resource string) <-chan struct{} {
	stands := make(chan struct{})
	once := sync.OnceFunc(func() { close(stands) })
	f.PrependWatchReactor(resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		once()
		return true, w, err
	})
	return stands
}

// TestFollowPicksUpNewPods follows a set in fake clusters: one pod is there, a second comes, and the set finishes.
func TestFollowPicksUpNewPods(t *testing.T) {
	js := train()
	first := newPod("leader", 0, 0, "a", with(corev1.PodSucceeded, exited("main", 0, 10)))
	kube, sets := fake.NewClientset(first), jobsetfake.NewClientset(js)
	kube.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "log" {
			return false, nil, nil
		}
		return true, &runtime.Unknown{Raw: []byte("2026-03-09T12:00:00Z hello")}, nil
	})
	podsWatched, setsWatched := watched(&kube.Fake, kube.Tracker(), "pods"), watched(&sets.Fake, sets.Tracker(), "jobsets")
	c := &cli.Clients{Kube: kube, JobSets: sets, Namespace: "team-a"}
	var out buffer
	f := newFollower(selection{jobIndex: -1}, corev1.PodLogOptions{}, 50, openerOf(kube), newSink(&out, &out, cli.Terminal{}))
	done := make(chan error, 1)
	go func() { done <- follow(t.Context(), c, sourceOf(setOf(js)), f) }()
	shows := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), want); {
			if time.Now().After(deadline) {
				t.Fatalf("no %q in:\n%s", want, out.String())
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	shows("[leader-0-0] hello\n")
	<-podsWatched
	<-setsWatched
	second := newPod("workers", 0, 0, "b", with(corev1.PodSucceeded, exited("main", 0, 10)))
	if _, err := kube.CoreV1().Pods("team-a").Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shows("[workers-0-0] hello\n")
	js = js.DeepCopy()
	js.Status.TerminalState = jobsetv1alpha2.TerminalStateCompleted
	if _, err := sets.JobsetV1alpha2().JobSets("team-a").UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("following goes on although the set has finished")
	}
	if got := strings.Count(out.String(), "hello"); got != 2 {
		t.Errorf("%d lines, want one of each pod:\n%s", got, out.String())
	}
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
