// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// released loses the store for good. The Jobs are released, then the empty store is accepted: the garbage collector
// leaves the Jobs alone, and they end by themselves.
func (c *cluster) released(t *testing.T) {
	namespace := c.namespace(t, "released")
	c.create(t, namespace, 0, sets)
	before := c.running(t, namespace, sets)
	served := c.releasedSets(t)

	begin, empty := time.Now(), c.store(t, "accepted")
	c.start(t, on(empty))
	refusal := c.refused(t, witness.ReasonEmptyStore, begin)
	if refusal.JobsAtStake < sets || lossIn(refusal, "StatefulSet") != takenSets {
		t.Errorf("at stake: %s", refusal.Losses())
	}
	accept := []string{"store", "accept", "--kubeconfig=" + c.Kubeconfig(), "--uuid=" + refusal.NewUUID, fmt.Sprintf("--revision=%d", refusal.Revision)}
	if out, err := c.run(t, "jobset-apiserver", accept...); err == nil {
		t.Errorf("the store was accepted although Jobs are at stake: %s", out)
	}
	c.must(t, "store", "release-orphans", "--kubeconfig="+c.Kubeconfig())
	c.must(t, accept...)
	c.reached(t)
	c.right = empty
	lost := c.watch(t, namespace, before, watched, never)
	report(t, row{fault: "empty store, accepted after the Jobs were released", jobs: sets, deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Fatalf("%d Jobs and pods were lost: %.300v", len(lost), lost)
	}
	served.kept(t)
	c.finish(t, namespace, "")
	framework.Eventually(t, "all Jobs are complete", func(ctx context.Context) error {
		jobs, err := c.Kube.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		complete := 0
		for i := range jobs.Items {
			if isComplete(&jobs.Items[i]) {
				complete++
			}
		}
		if complete != sets {
			return fmt.Errorf("%d of %d", complete, sets)
		}
		return nil
	})
}

func isComplete(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
