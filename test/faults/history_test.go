// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/history"
)

// historiesVariable is how many histories are recorded for each fault in a long run. Without it there is one history.
const historiesVariable = "JOBSET_FAULTS_HISTORIES"

// shortHistories are the faults of which a short run has one: those in which a server or a member can answer with what is not true any more.
var shortHistories = []string{"kill -9 of each server", "partition of the leader"}

func histories() int {
	n, err := strconv.Atoi(os.Getenv(historiesVariable))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// TestHistoriesUnderFaults lets 30 clients and some watchers work on a few JobSets while servers and members of etcd fail. What they
// were answered must be linearizable, what was acknowledged must not be lost, and watches must be complete and in order.
func TestHistoriesUnderFaults(t *testing.T) {
	tier.OnRequest(t, "histories of three servers under faults")
	r := useReplicated(t)
	count, operations, events := 0, 0, 0
	begin := time.Now()
	faults := serverFaults
	if histories() == 0 {
		faults = slices.DeleteFunc(slices.Clone(faults), func(f serverFault) bool { return !slices.Contains(shortHistories, f.name) })
		faults = sample.Kinds(t, faults, func(serverFault) string { return "" })
	}
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "-"), func(t *testing.T) {
			for i := range max(1, histories()) {
				h := checkedHistory(t, fault.name, *seed+uint64(i), func(ctx context.Context) error {
					if err := fault.happen(ctx, r); err != nil {
						return err
					}
					return r.recovered(ctx)
				})
				count++
				operations += len(h.Operations)
				for _, w := range h.Watchers {
					events += len(w.Events)
				}
			}
		})
	}
	t.Logf("%d histories, %d operations and %d events in %s", count, operations, events, time.Since(begin).Round(time.Second))
}

// checkedHistory returns a history during a fault after it was checked.
func checkedHistory(t *testing.T, fault string, seed uint64, happen func(context.Context) error) *history.History {
	t.Helper()
	h := recordHistory(t, seed, happen)
	report := history.Check(h, time.Minute)
	t.Logf("%s\n%s\nwithout an answer: %v", fault, report, h.Reasons())
	if !report.OK() {
		t.Errorf("%s: the servers broke their promises; repeat the choices with -seed=%d", fault, seed)
	}
	return h
}

// recordHistory lets a fault happen while clients work in a namespace of their own, and returns what they saw.
func recordHistory(t *testing.T, seed uint64, happen func(context.Context) error) *history.History {
	t.Helper()
	ctx := context.Background()
	namespaces := shared.Kube.CoreV1().Namespaces()
	namespace, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "history-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	run, err := history.Start(ctx, history.Defaults(shared.REST, namespace.Name, seed))
	if err != nil {
		t.Fatal(err)
	}
	if err := run.AwaitAnswers(ctx, 300, phaseTimeout); err != nil {
		t.Fatal(err)
	}
	if err := happen(ctx); err != nil {
		t.Error(err)
	}
	if err := run.AwaitAnswers(ctx, 300, phaseTimeout); err != nil {
		t.Fatal(err)
	}
	h, err := run.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
