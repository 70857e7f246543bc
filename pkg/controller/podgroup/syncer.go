// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// Caches are what informers show.
type Caches interface {
	// Group returns a PodReadinessGroup, shared and read-only; nil if there is none.
	Group(key cache.ObjectName) (*batchv1alpha1.PodReadinessGroup, error)
	// Pods returns the pods of a group of the prefix with that number.
	Pods(prefix int, key cache.ObjectName) ([]*members.Pod, error)
}

// Sizes says how many pods owners are meant to have, as members.Sizes does.
type Sizes interface {
	Read(ctx context.Context, group members.Group, owners []plan.Owner, age time.Duration) (map[plan.Owner]plan.OwnerSize, error)
}

// PodClient is what is needed of a client of pods in one namespace.
type PodClient interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
		subresources ...string) (*corev1.Pod, error)
}

// GroupClient is what is needed of a client of PodReadinessGroups in one namespace.
type GroupClient interface {
	children.OwnerClient[*batchv1alpha1.PodReadinessGroup]
	Get(ctx context.Context, name string, options metav1.GetOptions) (*batchv1alpha1.PodReadinessGroup, error)
}

// SyncerConfig is what a Syncer needs.
type SyncerConfig struct {
	*children.Host
	Caches   Caches
	Sizes    Sizes
	Recorder events.EventRecorder
	Pods     func(namespace string) PodClient
	Groups   func(namespace string) GroupClient
}

// Syncer labels the pods of groups, one group at a time.
type Syncer struct {
	SyncerConfig
	memory *memory
	// guard knows which labels of pods another party removes.
	guard *children.Guard
	// denials know which labels of pods were denied.
	denials *children.Denials
}

// NewSyncer returns one that remembers nothing yet.
func NewSyncer(config SyncerConfig) *Syncer {
	children.StatusGuardOf(config.Host)
	return &Syncer{config, newMemory(), children.NewGuard("pod", config.Clock), children.DenialsOf(config.Host)}
}

// Added notes that a pod was added to a group of the prefix with that number, so that the stabilization window of a
// group whose size nothing states begins again.
func (s *Syncer) Added(key cache.ObjectName, prefix int) { s.memory.added(key, prefix, s.Clock.Now()) }

// Sync looks at the groups of a name, and does what is to be done.
func (s *Syncer) Sync(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	// What was read before the question could be older than the answer.
	if !s.Consistency.VersionsShown(key) {
		return queue.Caches(queue.LagRetry), nil
	}
	s.Consistency.Forget(key)
	snapshots, err := s.observe(key)
	if err != nil || len(snapshots) == 0 {
		if err == nil {
			s.denials.Forget(key)
		}
		return queue.Due{}, err
	}
	var due queue.Due
	var errs []error
	for _, obs := range snapshots {
		p, err := s.decide(ctx, key, obs)
		done, applyErr := s.apply(ctx, key, obs, p)
		p = s.noteRefusals(key, obs, p, done.refused)
		errs = append(errs, err, applyErr, s.finish(ctx, key, obs, p))
		due.Continue = due.Continue || done.labeled > 0 && done.skipped > 0
		due.Acts = hostplan.Sooner(due.Acts, p.ActsAfter)
		if p.LookAgain > 0 && (due.Deadline == 0 || p.LookAgain < due.Deadline) {
			due.Deadline = p.LookAgain
		}
	}
	err = children.FirstErrors(errs...)
	return s.Host.Due(key, due, err), err
}
