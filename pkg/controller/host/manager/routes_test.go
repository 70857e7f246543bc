// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// TestGroupOfAnotherController has a group that a CustomResourceDefinition serves: its objects belong to another controller. A group that
// comes from there starts the controller, and one that goes there ends the program.
func TestGroupOfAnotherController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, "one", "two")
		e.elsewhere.Store(&[]string{"two"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e.Start(ctx)
		go e.Run(ctx)
		lost := make(chan error, 1)
		go func() { lost <- e.AwaitLoss(ctx) }()
		time.Sleep(time.Hour)
		e.check(t, "without the group", "")
		if !e.one.running.Load() || e.two.running.Load() || e.requests("services") > 0 {
			t.Errorf("one runs: %t, two runs: %t", e.one.running.Load(), e.two.running.Load())
		}
		follow := func(name string) {
			kind := e.factory.For("another")
			kind.Informer(informers.Need{Transform: func(obj any) (any, error) { return obj, nil }, Resource: informers.NewResource(
				e.factory.Aggregated(groups[name]), corev1.SchemeGroupVersion.WithResource("configmaps"), &corev1.ConfigMap{}, e.kube, e.kube.CoreV1().ConfigMaps(""))})
			watches, err := e.factory.Build(kind)
			if err != nil {
				t.Fatal(err)
			}
			watches.Start(ctx)
			synctest.Wait()
		}
		follow("two") // others may follow the objects of another controller
		e.elsewhere.Store(&[]string{})
		time.Sleep(groupsPoll + cachesPoll)
		if synctest.Wait(); !e.two.running.Load() {
			t.Error("two does not run with its group")
		}
		follow("two")
		if len(lost) > 0 {
			t.Fatalf("lost: %v", <-lost)
		}
		e.elsewhere.Store(&[]string{"two"})
		follow("two")
		const want = "the controller ends, and leaves the group alone when it is started again: kube-apiserver serves two.example.com/v1 from a " +
			"CustomResourceDefinition, which belongs to another controller"
		if err := <-lost; err == nil || err.Error() != want {
			t.Errorf("lost: %v, want %s", err, want)
		}
	})
}

func TestRunEndsWhileNothingHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		newEnv(t).Run(ctx)
	})
}
