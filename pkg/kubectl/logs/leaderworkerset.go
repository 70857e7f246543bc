// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	informers "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// LeaderWorkerSet is the Loader of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (*Source, error) {
	return snapshot.Read(ctx, c, name, snapshot.LoadLeaderWorkerSet, sourceOfLeaderWorkerSet)
}

// sourceOfLeaderWorkerSet returns a LeaderWorkerSet as a source. It has the pods of all replicas, in order.
func sourceOfLeaderWorkerSet(g *snapshot.LeaderWorkerSet) *Source {
	set := g.Set
	phase, _ := helper.Phase(set)
	return &Source{
		Object: set, kind: cli.LeaderWorkerSet, noun: "set", ref: cli.LeaderWorkerSet.Names[2] + "/" + set.Name, state: phase, pods: g.Pods(),
		selector: leaderworkersetv1.SetNameLabelKey + "=" + set.Name,
		prepare:  func(s *selection) (records, error) { return formerRuns(set, s), s.validateReplicas(g) },
		informer: informers.NewFilteredLeaderWorkerSetInformer,
		// A set does not finish: only another one that has taken its name, or none, will have no new pods.
		over: func(obj any) bool { return obj.(*leaderworkersetv1.LeaderWorkerSet).UID != set.UID },
	}
}

// formerRuns are the runs of the replicas that were recreated after a failure, in the order of their ends. They have no numbers.
func formerRuns(set *leaderworkersetv1.LeaderWorkerSet, sel *selection) records {
	h := records{absent: errors.New("a LeaderWorkerSet has no attempts")}
	groups := slices.DeleteFunc(slices.Clone(set.Status.Groups), func(s leaderworkersetv1.GroupStatus) bool {
		return s.FirstCause == nil || s.LastRestartTime == nil || sel.group != "" && sel.group != strconv.Itoa(int(s.Index))
	})
	slices.SortStableFunc(groups, func(a, b leaderworkersetv1.GroupStatus) int { return a.LastRestartTime.Compare(b.LastRestartTime.Time) })
	for i := range groups {
		h.attempts = append(h.attempts, record{
			title: fmt.Sprintf("the former run of group %d", groups[i].Index), cause: groups[i].FirstCause,
			pods: func(pods []*corev1.Pod) []*corev1.Pod { return pods },
		})
	}
	return h
}

// validateReplicas checks the selection against the replicas of a set.
func (s selection) validateReplicas(g *snapshot.LeaderWorkerSet) error {
	if s.step != "" || s.allSteps || s.replicatedJob != "" || s.jobIndex >= 0 {
		return errors.New("--step, --all-steps, --replicated-job, --job-index: a LeaderWorkerSet has none of these; choose pods with --group " +
			"and --worker")
	}
	most := g.Wanted() - 1
	if n := len(g.Replicas); n > 0 {
		most = max(most, g.Replicas[n-1].Index) // replicas of a surge are above
	}
	if err := index("--group", s.group, most); err != nil {
		return err
	}
	size := g.Size(&snapshot.Replica{})
	for _, replica := range g.Replicas {
		size = max(size, g.Size(replica))
	}
	return index("--worker", s.worker, size-1)
}

// index checks the value of a flag, which may be empty.
func index(flag, value string, most int) error {
	if value == "" {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n < 0 || n > most || strconv.Itoa(n) != value {
		return fmt.Errorf("%s: must be from 0 to %d, not %q", flag, most, value)
	}
	return nil
}

// withoutReplicas checks the selection for an object that has no replicas.
func (s selection) withoutReplicas() error {
	if s.group != "" || s.worker != "" {
		return errors.New("--group, --worker: only LeaderWorkerSets have groups")
	}
	return nil
}

// inReplica reports whether the pod is of the replica, and has the index in it, that are wanted.
func (s selection) inReplica(pod *corev1.Pod) bool {
	return (s.group == "" || s.group == strconv.Itoa(snapshot.ReplicaIndex(pod))) &&
		(s.worker == "" || s.worker == strconv.Itoa(snapshot.WorkerIndex(pod)))
}

// rankInReplica returns the rank of a pod of a LeaderWorkerSet: the index of its replica, and its own index in the replica.
func rankInReplica(pod *corev1.Pod) string {
	return fmt.Sprintf("%d-%d", snapshot.ReplicaIndex(pod), snapshot.WorkerIndex(pod))
}

// replaced reports whether a pod was created after the failure of one of its name, as StatefulSets do.
func replaced(pod *corev1.Pod, cause *jobsetv1alpha2.FailureCause) bool {
	return cause.Time != nil && pod.CreationTimestamp.After(cause.Time.Time)
}
