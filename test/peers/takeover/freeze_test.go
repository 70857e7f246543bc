// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestFreezeEndsByItself kills a migration while writes are refused, and runs it again after the time that the user has chosen.
func TestFreezeEndsByItself(t *testing.T) {
	o := begin(t, 3, 1)
	startServer(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	const copying = 6 // the number of a step
	if killed(t, rand.New(rand.NewPCG(1, 0)), "to-server", copying, "--freeze-timeout=1m") {
		t.Fatal("the migration was not killed")
	}
	for what, write := range map[string]func() error{
		"patching a JobSet":          func() error { return o.patch(t.Context(), jobSets, "set-0", `{"spec":{"suspend":true}}`) },
		"patching a LeaderWorkerSet": func() error { return o.patch(t.Context(), leaderWorkerSets, "groups-0", `{"spec":{"replicas":1}}`) },
		"scaling a LeaderWorkerSet": func() error {
			return o.patch(t.Context(), leaderWorkerSets, "groups-0", `{"spec":{"replicas":1}}`, "scale")
		},
		"writing a status": func() error { return o.patch(t.Context(), jobSets, "set-0", `{"status":{"restarts":7}}`, "status") },
		"creating a JobSet": func() error {
			_, err := cluster.JobSets.JobsetV1alpha2().JobSets(o.namespace).Create(t.Context(), o.newSet("new"), metav1.CreateOptions{})
			return err
		},
		"deleting a JobSet": func() error {
			return cluster.Dynamic.Resource(jobSets).Namespace(o.namespace).Delete(t.Context(), "set-0", metav1.DeleteOptions{})
		},
	} {
		err := write()
		if err == nil {
			t.Fatalf("%s was not refused", what)
		}
		for _, part := range []string{"migration ", " has refused writes since 20", " and does so until 20", " at the latest: objects are being copied; try again later"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the refusal does not say %q: %v", what, part, err)
			}
		}
	}
	o.identical(t, "while writes are refused")

	began := time.Now()
	framework.Eventually(t, "a write is accepted", func(ctx context.Context) error {
		return o.patch(ctx, jobSets, "set-1", `{"metadata":{"labels":{"written":"afterwards"}}}`)
	})
	t.Logf("writes were accepted %s after the migration was killed; --freeze-timeout was 1m", time.Since(began).Round(time.Second))
	out := migrate(t, "to-server")
	if !strings.Contains(out, "Writes are not refused any more: refusing them again, and repeating what comes after that") {
		t.Errorf("the migration went on as if writes had been refused all the time:\n%s", out)
	}
	if labels := o.get(t, jobSets, "set-1").GetLabels(); labels["written"] != "afterwards" {
		t.Errorf("a write after the freeze is lost: labels %v", labels)
	}
	o.unchanged(t, "after the move")
	migrate(t, "to-crd")
	o.works(t)
}

// TestOneAtATime holds the Lease as a migration that runs does.
func TestOneAtATime(t *testing.T) {
	startServer(t)
	ctx, stop := context.WithCancel(t.Context())
	holds, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "jobset-apiserver-migration"},
				Client:    cluster.Kube.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "the first one"},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(holds) }, OnStoppedLeading: func() {}},
		})
	}()
	defer func() {
		stop()
		<-ended
	}()
	select {
	case <-holds:
	case <-time.After(framework.StepTimeout()):
		t.Fatal("the Lease is not to be had")
	}
	out, err := migration(t.Context(), "to-server").CombinedOutput()
	if err == nil {
		err = errors.New("no error")
	}
	for _, want := range []string{
		"another migration, the first one, runs, or was ended without notice",
		"another migration runs: it renews the Lease jobset-system/jobset-apiserver-migration; wait until it has ended",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%v: the second migration does not say %q:\n%s", err, want, out)
		}
	}
	if fmt.Sprint(err) != "exit status 1" {
		t.Errorf("the second migration ended with %v", err)
	}
}
