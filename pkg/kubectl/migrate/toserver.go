// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

const (
	// effectTimeout is how long a policy may take until all servers refuse writes.
	effectTimeout = time.Minute
	// otherServers is how long a policy may take from one kube-apiserver to the others.
	otherServers = 2 * time.Second
	// shownProblems is how many objects a message names.
	shownProblems = 5
)

// each does something for each subject.
func (m *mover) each(do func(subject) error) error {
	for _, s := range m.subjects {
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// eachLocal does something for each subject that the CustomResourceDefinition still serves.
func (m *mover) eachLocal(ctx context.Context, do func(subject) error) error {
	return m.each(func(s subject) error {
		if routed, err := m.router.routed(ctx, s); err != nil || routed {
			return err
		}
		return do(s)
	})
}

func (m *mover) copier(s subject, dryRun bool) *copier {
	return &copier{source: m.dynamic, store: m.store, subject: s, dryRun: dryRun, progress: m.progress(s)}
}

// rehearse finds objects that jobset-apiserver does not accept, before anything is disturbed. It does not look for
// differences: the objects still change.
func (m *mover) rehearse(ctx context.Context, _ *StepRecord) error {
	return m.each(func(s subject) error {
		got, err := m.copier(s, true).run(ctx)
		if err != nil {
			return err
		}
		if rejected := rejections(got); len(rejected) > 0 {
			return final(errors.New("jobset-apiserver does not accept " + describe(rejected) +
				": correct or delete them, and run the command again"))
		}
		return nil
	})
}

// describe names objects with what is wrong with them.
func describe(results []migration.Result) string {
	var lines []string
	for _, r := range results[:min(len(results), shownProblems)] {
		lines = append(lines, fmt.Sprintf("%s %s/%s (%s)", r.Resource, r.Namespace, r.Name, r.Message))
	}
	text := strings.Join(lines, ", ")
	if more := len(results) - shownProblems; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// stopControllers scales the Deployments behind the webhooks to 0, and those of jobset-controller. The journal has the replicas
// before the first of them is changed.
func (m *mover) stopControllers(ctx context.Context, _ *StepRecord) error {
	hooks, err := findHooks(ctx, m.kube, m.groups())
	if err != nil {
		return err
	}
	for _, h := range hooks {
		m.journal.Saved[h.saved()] = h.object
		for _, service := range h.services {
			behind, err := deploymentsBehind(ctx, m.kube, service)
			if err != nil {
				return err
			}
			noteReplicas(m.journal.Replicas, behind)
		}
	}
	if err := m.stopOwn(ctx); err != nil {
		return err
	}
	return m.scaleAll(ctx, m.journal.Replicas, func(int32) int32 { return 0 })
}

// freeze refuses writes, and waits until kube-apiserver does.
func (m *mover) freeze(ctx context.Context, record *StepRecord) error {
	return m.refuse(ctx, record, copying)
}

// seal refuses also the writes that the freeze lets pass, while the API groups are switched.
func (m *mover) seal(ctx context.Context, _ *StepRecord) error {
	return m.refuse(ctx, m.journal.step("freeze"), switching)
}

func (m *mover) refuse(ctx context.Context, began *StepRecord, now stage) error {
	if m.journal.FrozenUntil == nil {
		until := metav1.NewTime(m.clock.Now().Add(m.freezeFor))
		m.journal.FrozenUntil = &until
		if err := m.journal.write(ctx, m.kube); err != nil {
			return err
		}
	}
	f := &freeze{subjects: m.subjects, id: m.journal.ID, since: began.Started.Time, deadline: m.journal.FrozenUntil.Time, stage: now}
	if err := f.install(ctx, m.kube, m.clock.Now()); err != nil {
		return err
	}
	return m.awaitRefusal(ctx, string(now))
}

// awaitRefusal waits until a write in a dry run is refused with a text, and some more, so that every kube-apiserver refuses writes.
func (m *mover) awaitRefusal(ctx context.Context, text string) error {
	err := m.each(func(s subject) error {
		probe, err := s.probeObject()
		if err != nil {
			return err
		}
		last := errors.New("no write was tried")
		err = wait.PollUntilContextTimeout(ctx, routePoll, effectTimeout, true, func(ctx context.Context) (bool, error) {
			_, err := m.dynamic.Resource(s.resource).Namespace(metav1.NamespaceDefault).
				Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if ctx.Err() == nil {
				last = err
			}
			return err != nil && strings.Contains(err.Error(), text), nil
		})
		if wait.Interrupted(err) {
			return fmt.Errorf("writes of %s are not refused: the answer to one is: %w", s.resource.Resource, last)
		}
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(otherServers):
		return nil
	}
}

// copy copies the objects into the store.
func (m *mover) copy(ctx context.Context, record *StepRecord) error {
	return m.eachLocal(ctx, func(s subject) error {
		got, err := m.copier(s, false).run(ctx)
		if err != nil {
			return err
		}
		note(record, s, got)
		if !got.clean() {
			return errors.New("not all objects are in the store: " + describe(got.problems))
		}
		return nil
	})
}

// compare copies once more what has changed until the writes of all users were refused, and compares.
func (m *mover) compare(ctx context.Context, record *StepRecord) error {
	// A server that has refused its store until all objects were imported serves a few seconds later.
	if err := m.router.awaitServer(ctx); err != nil {
		return err
	}
	return m.eachLocal(ctx, func(s subject) error {
		for _, dryRun := range []bool{false, true} {
			got, err := m.copier(s, dryRun).run(ctx)
			if err != nil {
				return err
			}
			note(record, s, got)
			if !got.clean() {
				return errors.New("the store does not have the same objects as the CustomResourceDefinition: " + describe(got.problems))
			}
		}
		return nil
	})
}

// note adds counts and hashes to the record of a step.
func note(record *StepRecord, s subject, got *copied) {
	if record.Counts == nil {
		record.Counts, record.Hashes = map[string]int{}, map[string]string{}
	}
	record.Counts[s.definition()], record.Hashes[s.definition()] = got.objects(), got.hash
}

// route makes kube-apiserver forward the groups to jobset-apiserver.
func (m *mover) route(ctx context.Context, _ *StepRecord) error {
	// All groups are routed before any is waited for: the freeze may end meanwhile.
	if err := m.each(func(s subject) error { return m.router.toServer(ctx, s.resource.GroupVersion()) }); err != nil {
		return err
	}
	return m.each(func(s subject) error {
		if err := m.router.awaitAvailable(ctx, s.apiService()); err != nil {
			return err
		}
		return m.router.awaitServed(ctx, s)
	})
}

// endWatches lets the CustomResourceDefinitions serve no version, after which clients list the objects of jobset-apiserver.
func (m *mover) endWatches(ctx context.Context, _ *StepRecord) error {
	return m.each(func(s subject) error { return m.router.serve(ctx, s, false) })
}

// install creates or updates all objects of a freeze.
func (f *freeze) install(ctx context.Context, client kubernetesClient, now time.Time) error {
	timer, err := ensure(ctx, client.BatchV1().Jobs(systemNamespace), f.timer(now), nil)
	if err != nil {
		return fmt.Errorf("the Job that ends the freeze: %w", err)
	}
	if ptr.Deref(timer.Spec.Suspend, false) {
		return fmt.Errorf("the Job %s/%s, which ends the freeze, is suspended, so that its time does not pass: exclude the namespace from what "+
			"suspends Jobs, such as Kueue with manageJobsWithoutQueueName, and delete the Job", systemNamespace, freezeName)
	}
	parameters := f.parameters(timer)
	if _, err := ensure(ctx, client.CoreV1().ResourceQuotas(systemNamespace), parameters, func(current *resourceQuota) {
		current.Annotations, current.OwnerReferences = parameters.Annotations, parameters.OwnerReferences
	}); err != nil {
		return fmt.Errorf("the parameters of the freeze: %w", err)
	}
	policy := f.policy()
	if _, err := ensure(ctx, client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), policy,
		func(current *admissionregistrationv1.ValidatingAdmissionPolicy) { current.Spec = policy.Spec }); err != nil {
		return fmt.Errorf("the policy of the freeze: %w", err)
	}
	if _, err := ensure(ctx, client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), f.binding(), nil); err != nil {
		return fmt.Errorf("the binding of the freeze: %w", err)
	}
	return nil
}
