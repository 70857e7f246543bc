// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// Kinds of children.
const (
	statefulSetKind = "StatefulSet"
	serviceKind     = "Service"
	podKind         = "Pod"
)

// askChildren asks about one child of each kind.
func (p *leaderWorkerSetPreviewer) askChildren(ctx context.Context) error {
	leader, workers, services := p.children()
	if leader == nil {
		return nil
	}
	leaderTemplate := "leaderTemplate"
	if p.set.Spec.LeaderWorkerTemplate.LeaderTemplate == nil {
		leaderTemplate = "workerTemplate"
	}
	var err error
	if p.leader, err = p.askStatefulSet(ctx, leader, p.set.Name, 1, p.set.Name+"-"+upTo(p.out.Groups), p.out.Groups,
		templateField(leaderTemplate)); err != nil {
		return err
	}
	if workers != nil && p.out.Groups > 0 {
		names := p.set.Name + "-" + upTo(p.out.Groups)
		pods := names + "-" + fromOne(p.out.ReplicaSize-1)
		if p.worker, err = p.askStatefulSet(ctx, workers, names, p.out.Groups, pods, p.out.Groups*(p.out.ReplicaSize-1),
			templateField("workerTemplate")); err != nil {
			return err
		}
	}
	if len(services) == 0 {
		return nil
	}
	return p.askServices(ctx, services[0])
}

// askStatefulSet asks about a StatefulSet and its first pod, which it returns as the cluster would have it.
func (p *leaderWorkerSetPreviewer) askStatefulSet(ctx context.Context, sts *appsv1.StatefulSet, names string, count int,
	podNames string, pods int,
	where locator) (*corev1.Pod, error) {
	out := ReplicaChild{Kind: statefulSetKind, Names: names, Count: count}
	exists, err := p.exists(ctx, appsv1.SchemeGroupVersion.WithResource("statefulsets"), sts.Namespace, sts.Name)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	out.Taken = exists
	question := sts.DeepCopy()
	if exists {
		question.GenerateName, question.Name = question.Name+"-", "" // the name is reported; the question is about all the rest
	}
	question.OwnerReferences = nil
	verdict, err := ask(ctx, where, func(ctx context.Context) error { return p.createStatefulSet(ctx, question) })
	if err != nil {
		return nil, err
	}
	out.Verdict = &verdict
	p.out.Children = append(p.out.Children, out)
	if pods == 0 {
		return nil, nil
	}
	child := ReplicaChild{Kind: podKind, Names: podNames, Count: pods}
	pod := firstPodOf(sts)
	if verdict.Answer != Refused { // the pod would only say the same again
		asked, err := p.askPod(ctx, &pod, where)
		if err != nil {
			return nil, err
		}
		asked.Warnings = slices.DeleteFunc(asked.Warnings, func(text string) bool { return slices.Contains(verdict.Warnings, text) })
		if err := p.askReferencesOf(ctx, p.out.Namespace, pod, where, &asked); err != nil {
			return nil, err
		}
		child.Verdict = &asked
	}
	p.out.Children = append(p.out.Children, child)
	return pod, nil
}

// askServices asks about the headless Service of the set, or of the first replica.
func (p *leaderWorkerSetPreviewer) askServices(ctx context.Context, service *corev1.Service) error {
	out := ReplicaChild{Kind: serviceKind, Names: service.Name, Count: 1}
	if helper.UniquePerReplica(p.set.Spec.NetworkConfig) {
		out.Names, out.Count = p.set.Name+"-"+upTo(p.out.Groups), p.out.Groups
	}
	existing, err := p.service(ctx, service.Namespace, service.Name)
	if err == nil {
		// The controller creates a Service only if there is none of the name.
		out.Verdict = &Verdict{Answer: Accepted, Warnings: append([]string{"it exists, and is used as it is"},
			unfit(existing, podLabels(service))...)}
		p.out.Children = append(p.out.Children, out)
		return nil
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	question := service.DeepCopy()
	question.OwnerReferences = nil
	verdict, err := ask(ctx, func(string) string { return "spec.networkConfig" },
		func(ctx context.Context) error { return p.createService(ctx, question) })
	if err != nil {
		return err
	}
	out.Verdict = &verdict
	p.out.Children = append(p.out.Children, out)
	return nil
}

// podLabels returns the Service with all labels of the pods that it is to select.
func podLabels(service *corev1.Service) *corev1.Service {
	out := service.DeepCopy()
	out.Spec.Selector[leaderworkersetv1.WorkerIndexLabelKey] = "0"
	return out
}

// fromOne is the pattern of the indices from 1 to n.
func fromOne(n int) string {
	if n <= 1 {
		return "1"
	}
	return "[1-" + upTo(n + 1)[len("[0-"):]
}
