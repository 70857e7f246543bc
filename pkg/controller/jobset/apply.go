// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
)

// claimsForgottenAfter is for how long the controller assumes, without asking the API, that a volume claim which it did not create exists.
const claimsForgottenAfter = 10 * time.Minute

// Apply writes the children of a plan, and returns what became of them. Applying the same plan twice does no harm: creations
// have fixed names, deletions and patches name the incarnation that they mean. When the context ends, no other child is
// written. The error joins those of the results.
func (s *Syncer) Apply(ctx context.Context, obs *plan.Observed, p plan.Plan) (plan.Results, error) {
	s.logProblems(ctx, cache.MetaObjectToName(obs.JobSet), p.Problems)
	err := s.unask(ctx, obs, p)
	run := &applier{Syncer: s, js: obs.JobSet, retryNamesAfter: plan.RetryNamesAfter(*obs)}
	errs := []error{
		err,
		run.deleteJobs(ctx, p.DeleteJobs),
		run.deleteGroups(ctx, obs.Grouped, p.Groups.Delete),
		run.patchJobs(ctx, p.PatchJobs),
		run.create(ctx, p),
	}
	slices.SortFunc(run.results.RefusedResources, func(a, b hostplan.BlockedChild) int { return cmp.Compare(a.What, b.What) })
	slices.Sort(run.results.ClaimErrors)
	run.results.IgnoredQueue = kueue.IgnoredQueue(ctx, s.deps.Kueue, s.queueReported, obs.JobSet, p.DespiteQueue)
	run.results.Interrupted = children.Ended(ctx)
	s.backlogs.note(cache.MetaObjectToName(obs.JobSet), p.Backlog, run.created()+min(run.resumed, p.Resumed), p.BacklogFull)
	return run.results, children.FirstErrors(errs...)
}

// moved returns whether a set is in another attempt than the one that was observed, or has ended meanwhile. Restarts of single Jobs count.
func moved(observed, now *jobsetv1alpha2.JobSet) bool {
	restarts := func(a, b jobsetv1alpha2.ReplicatedJobStatus) bool {
		return a.Name == b.Name && slices.Equal(a.JobRestarts, b.JobRestarts)
	}
	was, is := restarted(&observed.Status), restarted(&now.Status)
	return observed.Status.Restarts != now.Status.Restarts || observed.Status.TerminalState != now.Status.TerminalState ||
		!slices.EqualFunc(was, is, restarts)
}

// restarted returns the status of the replicatedJobs of which single Jobs were restarted.
func restarted(status *jobsetv1alpha2.JobSetStatus) (out []jobsetv1alpha2.ReplicatedJobStatus) {
	for i := range status.ReplicatedJobsStatus {
		if s := &status.ReplicatedJobsStatus[i]; slices.ContainsFunc(s.JobRestarts, func(n int32) bool { return n > 0 }) {
			out = append(out, *s)
		}
	}
	return out
}

// created returns how many Jobs were created.
func (a *applier) created() (n int) {
	for _, result := range a.results.Creations {
		if result == plan.Created {
			n++
		}
	}
	return n
}

// maxProblems is the number of malformed children that are logged of many.
const maxProblems = 3

// logProblems logs which children are ignored, unless that was logged before.
func (s *Syncer) logProblems(ctx context.Context, key cache.ObjectName, problems []string) {
	if len(problems) == 0 {
		s.problems.Forget(key)
		return
	}
	first := strings.Join(problems[:min(maxProblems, len(problems))], "; ")
	if s.problems.Noted(key) == first {
		return
	}
	s.problems.Note(key, first)
	klog.FromContext(ctx).Info("Ignored malformed children", "children", len(problems), "reason", first)
}

// applier applies one plan.
type applier struct {
	*Syncer
	js *jobsetv1alpha2.JobSet
	// retryNamesAfter is when a taken name is asked for again.
	retryNamesAfter time.Duration

	mu      sync.Mutex
	results plan.Results
	// resumed is how many Jobs were resumed.
	resumed int
}

// note adds to the results.
func (a *applier) note(add func(*plan.Results)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	add(&a.results)
}

func (a *applier) accepted(n int) { a.note(func(r *plan.Results) { r.Accepted += n }) }

func (a *applier) deleteJobs(ctx context.Context, jobs []plan.JobRef) error {
	accepted, err := a.jobs.Delete(ctx, a.js, jobs)
	a.accepted(accepted)
	return err
}

func (a *applier) create(ctx context.Context, p plan.Plan) error {
	// Pods would run without their names or wait without their volumes, so Jobs come last. Those whose groups do not exist
	// are not in the plan.
	groups := a.createGroups(ctx, p.Groups.Create)
	if err := children.FirstErrors(a.createService(ctx, p.CreateService), a.createClaims(ctx, p.CreateClaims)); err != nil {
		return children.FirstErrors(err, groups)
	}
	return children.FirstErrors(groups, a.createJobs(ctx, p.CreateJobs))
}

func (a *applier) createService(ctx context.Context, service *corev1.Service) error {
	if service == nil || children.Ended(ctx) {
		return nil
	}
	ctx, end := children.Finishing(ctx)
	defer end()
	_, err := a.services.Create(ctx, a.js, service)
	if err == nil || apierrors.IsAlreadyExists(err) || children.TerminatingNamespace(err) {
		return nil
	}
	a.note(func(r *plan.Results) { r.ServiceError = err.Error() })
	a.refused("the Service "+service.Name, children.RefusalOf(err))
	return fmt.Errorf("creating service %s/%s: %w", service.Namespace, service.Name, err)
}

func (a *applier) createClaims(ctx context.Context, claims []*corev1.PersistentVolumeClaim) error {
	return a.claims.InOrder(ctx, a.js, len(claims), func(ctx context.Context, i int) error { return a.createClaim(ctx, claims[i]) })
}

func (a *applier) createClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := a.claims.Create(ctx, a.js, claim)
	switch {
	case err == nil, children.TerminatingNamespace(err):
		return nil
	case apierrors.IsAlreadyExists(err):
		a.rememberTaken(ctx, claim)
		return nil
	}
	a.note(func(r *plan.Results) { r.ClaimErrors = append(r.ClaimErrors, err.Error()) })
	a.refused("the PersistentVolumeClaim "+claim.Name, children.RefusalOf(err))
	return fmt.Errorf("creating persistent volume claim %s/%s: %w", claim.Namespace, claim.Name, err)
}

// refused notes the refusal of the Service, a claim or a group; of several the first one in alphabetical order.
func (a *applier) refused(what string, why plan.Refusal) {
	a.note(func(r *plan.Results) {
		if r.Refused == "" || what < r.Refused {
			r.Refused, r.Refusals = what, []plan.Refusal{why}
		}
	})
}

// rememberTaken remembers that a claim exists which no cache shows. One that carries our label will be shown, and its end
// too: if that was remembered here, the set would not notice that the claim is gone.
func (a *applier) rememberTaken(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	existing, err := a.claims.Get(ctx, claim.Namespace, claim.Name)
	if err == nil && existing.Labels[jobsetv1alpha2.JobSetNameKey] == "" {
		a.takenClaims.Add(cache.MetaObjectToName(claim).String(), true, claimsForgottenAfter)
	}
}

// creations are the results of creations in the words of the plan.
var creations = map[children.Result]plan.Creation{
	children.NotTried: plan.NotTried, children.Created: plan.Created, children.Exists: plan.Exists, children.Repaired: plan.LabelsRestored,
	children.NameTaken: plan.NameTaken, children.NameFreed: plan.NameFreed,
	children.Refused: plan.Refused, children.TemplateRefused: plan.TemplateRefused,
}

func (a *applier) createJobs(ctx context.Context, jobs []*batchv1.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	what := children.Creations[*batchv1.Job]{Children: jobs, Template: replicatedJobOf, Repair: a.restoreLabels, TakenFor: a.retryNamesAfter}
	if planinplace.Restarts(a.js, a.gates()) {
		what.Stored = a.noteMissingRules
	}
	created := a.jobs.CreateAll(ctx, a.js, what)
	a.note(func(r *plan.Results) {
		r.Accepted += created.Accepted
		for _, result := range created.Results {
			r.Creations = append(r.Creations, creations[result])
		}
		if created.Err != nil {
			r.CreationError = created.Err.Error()
		}
		for _, refusal := range created.Refusals {
			if r.Refused == "" { // the condition is about a group otherwise
				r.Refusals = append(r.Refusals, refusal)
			}
		}
	})
	return created.Err
}

// noteMissingRules notes that a Job was stored without restart rules of its containers.
func (a *applier) noteMissingRules(job, stored *batchv1.Job) {
	if container := plan.LostRules(job, stored); container != "" {
		a.note(func(r *plan.Results) {
			if r.MissingRules == nil {
				r.MissingRules = &plan.MissingRules{Job: job.Name, Container: container}
			}
		})
	}
}

// restoreLabels gives a Job the labels back with which it was created. Without that of the set no cache shows it.
func (a *applier) restoreLabels(ctx context.Context, job *batchv1.Job, err error) (children.Result, error) {
	lost := plan.LostLabels(job)
	switch {
	case job.Labels[jobsetv1alpha2.JobSetNameKey] != "":
		return children.Exists, nil
	case lost[jobsetv1alpha2.JobSetNameKey] == "":
		return children.Refused, fmt.Errorf("%w, without the label %s on itself and on its pods", err, jobsetv1alpha2.JobSetNameKey)
	}
	result, err := a.jobs.Relabel(ctx, a.js, job, lost)
	if result == children.Repaired {
		a.accepted(1)
	}
	return result, err
}

func replicatedJobOf(job *batchv1.Job) string { return job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] }
