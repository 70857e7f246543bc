// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// life is what becomes of an object of the user.
type life struct {
	kind           string
	create, remove func(context.Context) error
	// works returns whether the object has done what it is for.
	works func(context.Context) (bool, error)
}

// run creates the object, waits until it works, and deletes it. It returns how long that took.
func (e *env) run(ctx context.Context, l life) (time.Duration, error) {
	began := time.Now()
	step, last := "created", error(nil)
	err := e.poll(ctx, e.bound, func(ctx context.Context) (bool, error) {
		switch step {
		case "created":
			if last = l.create(ctx); last == nil || apierrors.IsAlreadyExists(last) {
				step = "working"
			}
		case "working":
			var works bool
			if works, last = l.works(ctx); works {
				step = "deleted"
			}
		case "deleted":
			last = l.remove(ctx)
			return apierrors.IsNotFound(last), nil
		}
		return false, nil
	})
	took := time.Since(began).Round(100 * time.Millisecond)
	if err != nil {
		return took, fmt.Errorf("a plain %s was not %s within %v: %w", l.kind, step, e.bound, errors.Join(last, err))
	}
	return took, nil
}

// serves runs a plain JobSet from its creation to its deletion, and returns how long that took.
func (e *env) serves(ctx context.Context) (time.Duration, error) {
	e.count++
	js := builders.JobSet(fmt.Sprintf("plain-%d", e.count), builders.WithJobs("w", 1, 1))
	js.Namespace = ""
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"jobset-apiserver.io/kwok-run-seconds": "0"}
	sets := e.plain.JobsetV1alpha2().JobSets(plain)
	return e.run(ctx, life{
		kind: "JobSet",
		create: func(ctx context.Context) error {
			_, err := sets.Create(ctx, js, metav1.CreateOptions{})
			return err
		},
		works: func(ctx context.Context) (bool, error) {
			current, err := sets.Get(ctx, js.Name, metav1.GetOptions{})
			return err == nil && current.Status.TerminalState == "Completed", err
		},
		remove: func(ctx context.Context) error {
			return sets.Delete(ctx, js.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		},
	})
}

// servesRestarted lists the sets of the user, and runs a plain JobSet with a controller that has just started. The JobSet is no use without
// the watches of the new controller.
func (e *env) servesRestarted(ctx context.Context) error {
	if err := e.direct.reads(ctx); err != nil {
		return err
	}
	if err := e.clusterScript(ctx, "stop", "controller"); err != nil {
		return err
	}
	if err := e.restart(ctx); err != nil {
		return err
	}
	_, err := e.serves(ctx)
	return err
}

// servesGroups runs the pods of a plain LeaderWorkerSet, about which kube-apiserver asks the webhook, and deletes it.
func (e *env) servesGroups(ctx context.Context) error {
	lws := stoppedGroups()
	lws.Name, lws.Spec.Replicas, lws.Spec.LeaderWorkerTemplate.GroupSize = fmt.Sprintf("plain-%d", e.count), new(int32(2)), new(int32(2))
	groups := e.plain.LeaderworkersetV1().LeaderWorkerSets(plain)
	_, err := e.run(ctx, life{
		kind: "LeaderWorkerSet",
		create: func(ctx context.Context) error {
			_, err := groups.Create(ctx, lws, metav1.CreateOptions{})
			return err
		},
		works: func(ctx context.Context) (bool, error) {
			current, err := groups.Get(ctx, lws.Name, metav1.GetOptions{})
			return err == nil && current.Status.ReadyReplicas == 2, err
		},
		remove: func(ctx context.Context) error {
			return groups.Delete(ctx, lws.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		},
	})
	return err
}
