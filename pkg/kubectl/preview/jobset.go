// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// previewer previews one set.
type previewer struct {
	*Session
	out Set
	// gates are the feature gates of the server.
	gates gates.Gates

	js       *jobsetv1alpha2.JobSet
	children plan.Children
	names    sets.Set[string]
	// pods are the first ones of the replicatedJobs, as the cluster would have them; nil where there is none.
	pods []*corev1.Pod
}

// JobSet is the Previewer of JobSets.
func JobSet(ctx context.Context, s *Session, object *unstructured.Unstructured) (View, error) {
	p := &previewer{Session: s, out: Set{Kind: cli.JobSet.Title, Name: object.GetName(), Namespace: object.GetNamespace()}}
	if err := p.run(ctx, object); err != nil {
		return nil, err
	}
	return &p.out, nil
}

func (p *previewer) run(ctx context.Context, object *unstructured.Unstructured) (err error) {
	p.js = &jobsetv1alpha2.JobSet{}
	p.out.Verdict, err = ask(ctx, func(ctx context.Context) error { return p.create(ctx, cli.JobSet, object, p.js) })
	if err != nil {
		return err
	}
	if p.out.Verdict.Answer != Accepted {
		p.out.Verdict.Answer = Refused // it is the user who creates the set
		return nil
	}
	p.out.Name = p.js.Name
	note, err := p.readGates(ctx)
	if err != nil {
		return err
	}
	p.children = plan.ChildrenOf(p.js, p.gates)
	for i := range p.js.Spec.ReplicatedJobs {
		rj := nameReplicatedJob(p.js, &p.js.Spec.ReplicatedJobs[i], p.children.Jobs[i])
		p.out.ReplicatedJobs = append(p.out.ReplicatedJobs, rj)
		p.out.Jobs += rj.Jobs
		p.out.Pods += rj.Pods
	}
	p.out.Notes = notes(p.js)
	if note != "" {
		p.out.Notes = append(p.out.Notes, note)
	}
	if err := p.lookAround(ctx); err != nil {
		return err
	}
	if err := p.askAll(ctx); err != nil {
		return err
	}
	p.out.Quota = countQuota(p.quotas[p.out.Namespace], p.usage())
	return nil
}

// notes say what the cluster does not say about the set.
func notes(js *jobsetv1alpha2.JobSet) []string {
	var out []string
	if manager := ptr.Deref(js.Spec.ManagedBy, ""); manager != "" && manager != jobsetv1alpha2.JobSetControllerName {
		return append(out, fmt.Sprintf("the controller %q runs the set, which spec.managedBy names: what it creates is not known here", manager))
	}
	if ptr.Deref(js.Spec.Suspend, false) {
		out = append(out, "the set is suspended: its Jobs are created suspended, and have pods once the set is resumed")
	}
	return out
}

// lookAround reads which names are taken, and the quotas. What the user may not read is left out, with a note.
func (p *previewer) lookAround(ctx context.Context) (err error) {
	if p.names, err = p.jobNames(ctx, p.out.Namespace); err != nil {
		if p.names = nil; !apierrors.IsForbidden(err) {
			return err
		}
		p.out.Notes = append(p.out.Notes, "whether names of Jobs are taken is not known: "+err.Error())
	}
	if _, read := p.quotas[p.out.Namespace]; read {
		return nil
	}
	if p.quotas[p.out.Namespace], err = p.cluster.quotas(ctx, p.out.Namespace); err != nil {
		if delete(p.quotas, p.out.Namespace); !apierrors.IsForbidden(err) {
			return err
		}
		p.out.Notes = append(p.out.Notes, "whether the quotas are large enough is not known: "+err.Error())
	}
	return nil
}

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
		group.Go(func() error { return p.askClaim(ctx, &p.out.Claims[i], claim) })
	}
	return group.Wait()
}

// askService asks about the headless Service. One that exists already may not be fit for the set.
func (p *previewer) askService(ctx context.Context, service *corev1.Service) error {
	out := &Child{Name: service.Name}
	p.out.Service = out
	existing, err := p.service(ctx, service.Namespace, service.Name)
	if err == nil {
		out.Exists, out.Verdict = true, Verdict{Answer: Accepted, Warnings: unfit(existing, service)}
		return nil
	}
	return askChild(ctx, out, err, service, func(ctx context.Context) error { return p.createService(ctx, service) })
}

func (p *previewer) askClaim(ctx context.Context, out *Child, claim *corev1.PersistentVolumeClaim) error {
	_, err := p.claim(ctx, claim.Namespace, claim.Name)
	if err == nil {
		out.Exists, out.Verdict = true, Verdict{Answer: Accepted}
		return nil
	}
	return askChild(ctx, out, err, claim, func(ctx context.Context) error { return p.createClaim(ctx, claim) })
}

// askChild asks about a child that the set shares with others: one that exists is used as it is. It was looked for before,
// because a quota that is used up would refuse the question; who may not look can still ask.
func askChild(ctx context.Context, out *Child, notFound error, child metav1.Object, create func(context.Context) error) (err error) {
	if !apierrors.IsNotFound(notFound) && !apierrors.IsForbidden(notFound) {
		return notFound
	}
	detach(child)
	out.Verdict, err = ask(ctx, func(ctx context.Context) error {
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
	out, rj, job := &p.out.ReplicatedJobs[i], &p.js.Spec.ReplicatedJobs[i], p.children.Jobs[i].DeepCopy()
	out.TakenNames = taken(p.js, rj, p.names.Has)
	if p.names.Has(job.Name) {
		// The name is reported; the question is about all the rest.
		job.GenerateName, job.Name = job.Name+"-", ""
	}
	detach(job)
	asked := job
	ofJob, err := ask(ctx, func(ctx context.Context) error {
		created, err := p.createJob(ctx, job)
		if err == nil {
			asked = created
		}
		return err
	})
	if err != nil {
		return err
	}
	out.Job = &ofJob
	p.pods[i] = firstPod(p.children.Jobs[i].Name, asked)
	if ofJob.Answer == Refused || out.Pods == 0 {
		return nil // the pod would only say the same again, or there is none
	}
	ofPod, err := ask(ctx, func(ctx context.Context) error {
		created, err := p.createPod(ctx, p.pods[i])
		if err == nil {
			p.pods[i] = created
		}
		return err
	})
	if err != nil {
		return err
	}
	// What is said of a template is said again of the pod.
	ofPod.Warnings = slices.DeleteFunc(ofPod.Warnings, func(text string) bool { return slices.Contains(ofJob.Warnings, text) })
	out.Pod = &ofPod
	return nil
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
