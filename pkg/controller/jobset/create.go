// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func (a *applier) create(ctx context.Context, p plan.Plan) error {
	// Pods would run without their names or wait without their volumes, so Jobs come last.
	err := controller.FirstErrors(a.createService(ctx, p.CreateService), a.createClaims(ctx, p.CreateClaims))
	if err != nil {
		return err
	}
	return a.createJobs(ctx, p.CreateJobs, p.More)
}

func (a *applier) createService(ctx context.Context, service *corev1.Service) error {
	if service == nil || ctx.Err() != nil {
		return nil
	}
	ctx, end := controller.Finishing(ctx)
	defer end()
	created, err := a.Kube.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err), terminatingNamespace(err):
		return nil
	case err != nil:
		a.reportFailure(a.js, serviceCreationFailed(err))
		return fmt.Errorf("creating service %s/%s: %w", service.Namespace, service.Name, err)
	}
	a.writes.Wrote(a.key, resourceServices, created.ResourceVersion)
	return nil
}

func (a *applier) createClaims(ctx context.Context, claims []*corev1.PersistentVolumeClaim) error {
	return a.slowStart.Do(ctx, a.key, len(claims), func(ctx context.Context, i int) error { return a.createClaim(ctx, claims[i]) })
}

func (a *applier) createClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	created, err := a.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	switch {
	case terminatingNamespace(err):
	case apierrors.IsAlreadyExists(err):
		a.rememberTaken(ctx, claim)
	case err != nil:
		a.reportFailure(a.js, claimCreationFailed(err))
		return fmt.Errorf("creating persistent volume claim %s/%s: %w", claim.Namespace, claim.Name, err)
	default:
		a.writes.Wrote(a.key, resourceClaims, created.ResourceVersion)
	}
	return nil
}

// rememberTaken remembers that a claim exists which no cache shows. One that carries our label will be shown, and its end
// too: if that was remembered here, the set would not notice that the claim is gone.
func (a *applier) rememberTaken(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	existing, err := a.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err == nil && existing.Labels[jobsetv1alpha2.JobSetNameKey] == "" {
		a.takenClaims.Add(cache.MetaObjectToName(claim).String(), true, claimsForgottenAfter)
	}
}
