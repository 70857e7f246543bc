// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// askAll asks about the children, several at a time.
func (p *previewer) askAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	p.pods = make([]*corev1.Pod, len(p.children.Jobs))
	for i := range p.children.Jobs {
		if p.children.Jobs[i] != nil {
			group.Go(func() error { return p.askJob(ctx, i) })
		}
	}
	if service := p.children.Service; service != nil {
		group.Go(func() error { return p.askService(ctx, service) })
	}
	p.out.Claims = make([]Child, len(p.children.Claims))
	for i, claim := range p.children.Claims {
		p.out.Claims[i].Name = claim.Name
		group.Go(func() error { return p.askClaim(ctx, &p.out.Claims[i], claim, claimField(p.js, claim.Name)) })
	}
	return group.Wait()
}

// askService asks about the headless Service. One that exists already may not be fit for the set.
func (p *previewer) askService(ctx context.Context, service *corev1.Service) error {
	out := &Child{Name: service.Name}
	p.out.Service = out
	existing, err := p.service(ctx, service.Namespace, service.Name)
	if planned := p.manifest.service(service.Namespace, service.Name); apierrors.IsNotFound(err) && planned != nil {
		existing, err = planned, nil
	}
	if err == nil {
		out.Exists, out.Verdict = true, Verdict{Answer: Accepted, Warnings: unfit(existing, service)}
		return nil
	}
	return askChild(ctx, out, err, service, serviceField, func(ctx context.Context) error { return p.createService(ctx, service) })
}

func (p *previewer) askClaim(ctx context.Context, out *Child, claim *corev1.PersistentVolumeClaim, where locator) error {
	_, err := p.claim(ctx, claim.Namespace, claim.Name)
	if err == nil || apierrors.IsNotFound(err) && p.manifest.has("PersistentVolumeClaim", claim.Namespace, claim.Name) {
		out.Exists, out.Verdict = true, Verdict{Answer: Accepted}
		return nil
	}
	return askChild(ctx, out, err, claim, where, func(ctx context.Context) error { return p.createClaim(ctx, claim) })
}

// askChild asks about a child that the set shares with others: one that exists is used as it is. It was looked for before,
// because a quota that is used up would refuse the question; who may not look can still ask.
func askChild(ctx context.Context, out *Child, notFound error, child metav1.Object, where locator, create func(context.Context) error) (
	err error) {
	if !apierrors.IsNotFound(notFound) && !apierrors.IsForbidden(notFound) {
		return notFound
	}
	detach(child)
	out.Verdict, err = askOwned(ctx, where, child, func(ctx context.Context) error {
		err := create(ctx)
		if apierrors.IsAlreadyExists(err) {
			out.Exists = true
			return nil
		}
		return err
	})
	return err
}

// unfit explains why an existing Service gives the pods of a set no DNS names.
func unfit(existing, wanted *corev1.Service) []string {
	switch {
	case existing.Spec.ClusterIP != corev1.ClusterIPNone:
		return []string{"it is not headless, so that pods of the set are not found by their DNS names"}
	case !selects(existing, wanted.Spec.Selector):
		return []string{"it does not select the pods of the set, so that they are not found by their DNS names"}
	}
	return nil
}

func selects(service *corev1.Service, pods map[string]string) bool {
	for key, value := range service.Spec.Selector {
		if pods[key] != value {
			return false
		}
	}
	return len(service.Spec.Selector) > 0
}

// askJob asks about the first Job of a replicatedJob and its first pod.
func (p *previewer) askJob(ctx context.Context, i int) error {
	out, rj, job := &p.out.ReplicatedJobs[i], &p.js.Spec.ReplicatedJobs[i], p.children.Jobs[i]
	out.TakenNames = taken(p.js, rj, p.names.Has)
	asked, err := p.Session.askJob(ctx, job, p.names.Has(job.Name), out.Pods > 0, jobField(i))
	if err != nil {
		return err
	}
	out.Job, out.Pod, p.pods[i] = asked.job, asked.pod, asked.first
	return nil
}

// askedJob are the verdicts about a Job and its first pod, and that pod as the cluster would have it.
type askedJob struct {
	job, pod *Verdict
	first    *corev1.Pod
}

// askJob asks about a Job, whose name may be taken, and if it has pods about the first of them.
func (s *Session) askJob(ctx context.Context, from *batchv1.Job, taken, hasPods bool, where locator) (out askedJob, err error) {
	job := from.DeepCopy()
	if taken {
		// The name is reported; the question is about all the rest.
		job.GenerateName, job.Name = job.Name+"-", ""
	}
	detach(job)
	asked := job
	ofJob, err := askOwned(ctx, where, job, func(ctx context.Context) error {
		created, err := s.createJob(ctx, job)
		if err == nil {
			asked = created
		}
		return err
	})
	if err != nil {
		return out, err
	}
	out.job = &ofJob
	out.first = firstPod(from.Name, asked)
	if ofJob.Answer == Refused || !hasPods {
		return out, nil // the pod would only say the same again, or there is none
	}
	ofPod, err := s.askPod(ctx, &out.first, podOf(where))
	if err != nil {
		return out, err
	}
	// What is said of a template is said again of the pod.
	ofPod.Warnings = slices.DeleteFunc(ofPod.Warnings, func(text string) bool { return slices.Contains(ofJob.Warnings, text) })
	out.pod = &ofPod
	return out, nil
}

// askPod asks about a pod, and puts what the cluster would create in its place. What it lacks and the manifest creates is replaced for
// the question.
func (s *Session) askPod(ctx context.Context, pod **corev1.Pod, where locator) (Verdict, error) {
	question := (*pod).DeepCopy()
	for {
		verdict, err := askOwned(ctx, where, question, func(ctx context.Context) error {
			created, err := s.createPod(ctx, question)
			if err == nil {
				created.Spec.PriorityClassName = (*pod).Spec.PriorityClassName
				*pod = created
			}
			return err
		})
		if err != nil || verdict.Answer != Refused || !s.manifest.standIn(question, verdict.Problems) {
			return verdict, err
		}
	}
}

// firstPod is the first pod that the Job controller creates for a Job.
func firstPod(name string, job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: name + "-", Namespace: job.Namespace,
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
		},
		Spec: template.Spec,
	}
	if job.UID != "" {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		pod.OwnerReferences[0].Name = name
		detach(pod)
	}
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		pod.GenerateName = name + "-0-"
		if pod.Spec.Hostname == "" {
			pod.Spec.Hostname = name + "-0"
		}
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[batchv1.JobCompletionIndexAnnotation] = "0"
	}
	return pod
}

// detach lets the owner of a child be deleted without it. To hold an owner back takes rights that the controller has, and the
// user need not have.
func detach(child metav1.Object) {
	owners := child.GetOwnerReferences()
	for i := range owners {
		owners[i].BlockOwnerDeletion = nil
	}
	child.SetOwnerReferences(owners)
}
