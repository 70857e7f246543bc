// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

const (
	// droppedFor is how long a field counts as one that the API server does not keep. Then the next status says whether it
	// does by now.
	droppedFor = 5 * time.Minute
	// reportedFor is how long it takes until the same set has another event about a feature that it uses and that is off.
	reportedFor = time.Hour
)

// droppedField is a field of the status that the API server does not keep, because the feature gate is on here and off there.
type droppedField string

const (
	droppedStartTime         droppedField = "startTime"
	droppedExecutionAttempts droppedField = "executionAttempts"
	droppedJobRestarts       droppedField = "jobRestarts"
	droppedAttempts          droppedField = "attempts"
	droppedPlacement         droppedField = "placement"
)

// consequences say what it means that a field is not kept.
var consequences = map[droppedField]string{
	droppedStartTime: "jobset-apiserver does not keep status.startTime: " +
		"deadlines are not enforced until both programs run with --feature-gates=JobSetActiveDeadlineSeconds=true",
	droppedExecutionAttempts: "jobset-apiserver does not keep status.executionAttempts: " +
		"executions are not counted until both programs run with --feature-gates=ExecutionAttemptsTracking=true",
	droppedJobRestarts: "jobset-apiserver does not keep jobRestarts of status.replicatedJobsStatus: " +
		"rules that restart single jobs are ignored until both programs run with --feature-gates=RestartJob=true",
	droppedAttempts: "jobset-apiserver does not keep status.attempts: " +
		"no history is kept until it has the version of the controller",
	droppedPlacement: "jobset-apiserver does not keep status.placement: " +
		"jobs with exclusive placement are not created until it has the version of the controller",
}

// dropped remembers the fields that the API server has not kept lately. A decision that waits until such a field is stored
// would never come, so that the feature counts as off here too.
type dropped struct {
	clock children.Clock
	// reported holds the sets that have an event, and the field.
	reported *expiring.Expiring

	mu    sync.Mutex
	until map[droppedField]time.Time
}

func newDropped(c children.Clock) *dropped {
	return &dropped{clock: c, reported: expiring.NewExpiring(), until: map[droppedField]time.Time{}}
}

// left returns for how long the field counts as dropped; 0 if it counts as kept.
func (d *dropped) left(field droppedField) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, d.until[field].Sub(d.clock.Now()))
}

// gates returns the features that decisions may use.
func (s *Syncer) gates() gates.Gates {
	gates := s.deps.Gates
	kept := func(field droppedField) bool { return s.dropped.left(field) == 0 }
	gates.JobSetActiveDeadlineSeconds = gates.JobSetActiveDeadlineSeconds && kept(droppedStartTime)
	gates.ExecutionAttemptsTracking = gates.ExecutionAttemptsTracking && kept(droppedExecutionAttempts)
	gates.RestartJob = gates.RestartJob && kept(droppedJobRestarts)
	return gates
}

// keepsAttempts returns whether the API server keeps the history of sets.
func (s *Syncer) keepsAttempts() bool { return s.dropped.left(droppedAttempts) == 0 }

// notice returns an error for what the API server did not store of a status.
func (d *dropped) notice(sent, stored *jobsetv1alpha2.JobSetStatus) error {
	var errs []error
	for field, lost := range map[droppedField]bool{
		droppedStartTime:         sent.StartTime != nil && stored.StartTime == nil,
		droppedExecutionAttempts: !ptr.Equal(sent.ExecutionAttempts, stored.ExecutionAttempts),
		droppedJobRestarts:       countsSingleJobs(sent) && !countsSingleJobs(stored),
		droppedAttempts:          len(sent.Attempts) > 0 && len(stored.Attempts) == 0,
		droppedPlacement:         sent.Placement != nil && stored.Placement == nil,
	} {
		if lost {
			d.note(field)
			errs = append(errs, errors.New(consequences[field]))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func (d *dropped) note(field droppedField) {
	droppedTotal.WithLabelValues(string(field)).Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until[field] = d.clock.Now().Add(droppedFor)
}

// mismatches returns what to report about features that the set uses and that are off, once an hour at most, and the time
// after which they may be on again; 0 for a set that lacks nothing. A condition would say the same, but would have to be
// written to each set, and taken back, by the program whose writes do not arrive as they were sent.
func (s *Syncer) mismatches(ctx context.Context, js *jobsetv1alpha2.JobSet) (notes []string, again time.Duration) {
	for _, field := range s.lacks(js) {
		left := s.dropped.left(field)
		if again == 0 || left < again {
			again = left
		}
		id := fmt.Sprintf("%s/%s %s %s", js.Namespace, js.Name, js.UID, field)
		if _, reported := s.dropped.reported.Get(id); reported {
			continue
		}
		s.dropped.reported.Set(id, true, reportedFor)
		s.logDropped(ctx, field)
		notes = append(notes, consequences[field])
	}
	return notes, again
}

// logDropped logs that a feature is off, once an hour for all sets.
func (s *Syncer) logDropped(ctx context.Context, field droppedField) {
	if _, reported := s.dropped.reported.Get(field); reported {
		return
	}
	s.dropped.reported.Set(field, true, reportedFor)
	klog.FromContext(ctx).Info("A feature that JobSets use is off", "reason", consequences[field])
}

// lacks returns the fields that the API server drops and without which the set does not run as it should. The history is
// none of these: it changes nothing for the set, and while versions differ it would be missing in all of them.
func (s *Syncer) lacks(js *jobsetv1alpha2.JobSet) (fields []droppedField) {
	if js.Status.TerminalState != "" || js.DeletionTimestamp != nil {
		return nil
	}
	for _, f := range []struct {
		field droppedField
		used  bool
	}{
		{droppedStartTime, s.deps.Gates.JobSetActiveDeadlineSeconds && js.Spec.ActiveDeadlineSeconds != nil},
		{droppedExecutionAttempts, s.deps.Gates.ExecutionAttemptsTracking},
		{droppedJobRestarts, s.deps.Gates.RestartJob && restartsSingleJobs(js)},
		{droppedPlacement, s.deps.Gates.ExclusivePlacement && domains.AskedFor(js)},
	} {
		if f.used && s.dropped.left(f.field) > 0 {
			fields = append(fields, f.field)
		}
	}
	return fields
}

func restartsSingleJobs(js *jobsetv1alpha2.JobSet) bool {
	return js.Spec.FailurePolicy != nil && slices.ContainsFunc(js.Spec.FailurePolicy.Rules, func(rule jobsetv1alpha2.FailurePolicyRule) bool {
		return rule.Action == jobsetv1alpha2.RestartJob || rule.Action == jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts
	})
}

func countsSingleJobs(status *jobsetv1alpha2.JobSetStatus) bool {
	return slices.ContainsFunc(status.ReplicatedJobsStatus,
		func(count jobsetv1alpha2.ReplicatedJobStatus) bool { return len(count.JobRestarts) > 0 })
}
