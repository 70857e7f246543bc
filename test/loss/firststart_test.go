// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// few is how many Jobs a first start meets.
const few = 8

// firstStart starts a server with an empty store in a cluster without a witness, beside a few Jobs of owners that the store does not know.
func (s *stage) firstStart(t *testing.T) {
	t.Helper()
	before := s.running(t, s.namespace, few)
	s.forget(t)
	begin := time.Now()
	s.start(t, on(s.store(t, "first")))
	if refusal := s.refused(t, witness.ReasonUnknownOwners, begin); refusal.JobsAtStake != few {
		t.Errorf("the refusal is %+v", refusal)
	}
	lost := s.watch(t, s.namespace, before, watched/2, never)
	report(t, row{fault: "first start beside a few Jobs", jobs: few, deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Fatalf("lost: %.300v", lost)
	}
	s.forget(t)
	s.serve(t, on(s.right))
}

// firstStart routes the group of the definition to a server with an empty store, in a cluster without a witness, as an
// installation does that does not take over.
func (o *takeover) firstStart(t *testing.T) {
	t.Helper()
	o.forget(t)
	begin := time.Now()
	o.do(t, "kubectl replace -f", "APISERVICE", o.service)
	o.start(t, on(o.store(t, "first-beside-definition")))
	refusal := o.refused(t, witness.ReasonCustomResources, begin)
	if !strings.Contains(refusal.Message, "They cannot be counted") || lossIn(refusal, "StatefulSet") != takenSets {
		t.Errorf("the refusal is %+v", refusal)
	}
	o.collect(t, o.namespace)
	o.nothingLost(t, "first start beside sets of a definition", begin)
	o.do(t, "kubectl label apiservice")
	o.local(t)
	framework.Eventually(t, "the server leaves the group to kube-apiserver, and still refuses because of the JobSets", func(ctx context.Context) error {
		record, err := o.record(ctx)
		if err == nil && (record.Refusal == nil || record.Refusal.Reason != witness.ReasonUnknownOwners || lossIn(record.Refusal, "StatefulSet") > 0) {
			err = fmt.Errorf("the record is %+v", record)
		}
		return err
	})
	o.forget(t)
	o.serveLocal(t)
}

// serveLocal starts the server on the right store while kube-apiserver serves LeaderWorkerSets.
func (o *takeover) serveLocal(t *testing.T) {
	t.Helper()
	o.serve(t, on(o.right))
	o.awaitUIDs(t)
}

// lossIn returns how many objects of a kind would be deleted.
func lossIn(refusal *witness.Refusal, kind string) (count int) {
	for _, loss := range refusal.AtStake {
		if loss.Kind == kind {
			count += loss.Count
		}
	}
	return count
}

// releasedSets are LeaderWorkerSets whose store is lost.
func (c *cluster) releasedSets(t *testing.T) *takeover {
	t.Helper()
	o := &takeover{stage: &stage{cluster: c}, namespace: c.namespace(t, "released-sets")}
	o.createSets(t)
	var err error
	if o.was, err = o.versions(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// kept fails the test if a StatefulSet, a pod, a Service or a revision of the sets is gone or another one.
func (o *takeover) kept(t *testing.T) {
	t.Helper()
	now, err := o.versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for name, was := range o.was {
		uid, _, _ := strings.Cut(was, ",")
		if !strings.HasPrefix(now[name], uid+",") {
			gone++
			t.Errorf("%s was %s, is %q", name, was, now[name])
		}
	}
	sets, err := o.Kube.AppsV1().StatefulSets(o.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d children of LeaderWorkerSets are gone; %d StatefulSets run", gone, len(o.was), len(sets.Items))
}
