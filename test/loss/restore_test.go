// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// restored restores a backup under running sets. A set that has ended since the backup does not run again.
func (s *stage) restored(t *testing.T) {
	ended := s.cluster.namespace(t, "ended")
	s.create(t, ended, 0, 1)
	s.running(t, ended, 1)
	s.reachesStatus(t, ended, setName(0))
	backup, restored := filepath.Join(s.store(t, "backup"), "jobset.db"), s.store(t, "restored")
	s.must(t, "store", "backup", backup, "--data-dir="+s.right)
	if err := s.JobSets.JobsetV1alpha2().JobSets(ended).Delete(t.Context(), setName(0), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.childrenGo(t, ended, setName(0))

	begin := time.Now()
	s.stop(t)
	s.must(t, "store", "restore", backup, "--data-dir="+restored)
	s.start(t, on(restored))
	refusal := s.refused(t, witness.ReasonRolledBack, begin)
	lost := s.watch(t, s.namespace, s.before, watched, never)
	s.must(t, "store", "accept", "--kubeconfig="+s.Kubeconfig(), "--uuid="+refusal.NewUUID, fmt.Sprintf("--revision=%d", refusal.Revision))
	s.reached(t)
	s.right = restored
	lost = append(lost, s.watch(t, s.namespace, s.before, watched, never)...)
	report(t, row{fault: "restored store, accepted", jobs: len(s.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Fatalf("%d Jobs and pods were lost: %.300v", len(lost), lost)
	}
	s.isHeld(t, ended, setName(0))
	life := s.newLife(t)
	life.goOn(t)
}

// isHeld waits until a set is held, and has no Job.
func (c *cluster) isHeld(t *testing.T, namespace, name string) {
	t.Helper()
	framework.Eventually(t, "the set is held", func(ctx context.Context) error {
		set, err := c.JobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(set.Status.Conditions, jobsetv1alpha2.Held) {
			err = fmt.Errorf("the status is %+v", set.Status)
		}
		return err
	})
	c.childrenGo(t, namespace, name)
}

// reachesStatus waits until the status of a set shows its Job.
func (c *cluster) reachesStatus(t *testing.T, namespace, name string) {
	t.Helper()
	framework.Eventually(t, "the status shows the Job", func(ctx context.Context) error {
		set, err := c.JobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (len(set.Status.ReplicatedJobsStatus) == 0 || set.Status.ReplicatedJobsStatus[0].Ready == 0) {
			err = fmt.Errorf("the status is %+v", set.Status)
		}
		return err
	})
}
