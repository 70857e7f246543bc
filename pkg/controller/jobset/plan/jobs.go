// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"math"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// writeJobs changes the active Jobs and creates missing ones. What was refused is over when none is missing.
func writeJobs(w work) changes {
	waiting := backlog(w.Observed, w.owned)
	patched := jobPatches(w, waiting)
	missing, more := missingJobs(w.Observed, w.owned, w.waits, waiting+patched.resumed)
	c := changes{plan: Plan{
		PatchJobs: patched.patches, CreateJobs: missing, Backlog: waiting, Resumed: patched.resumed,
		BacklogFull: more || patched.backlogFull, More: more || patched.more,
	}}
	if c.plan.BacklogFull {
		c.plan.RequeueAfter = BacklogTimeout // in case the Job controller does not take care of the Jobs that exist
	}
	if len(missing) > 0 || more {
		return c
	}
	if !w.plan.nothingMissing(w.owned) {
		c.troubles = reports(namesFree()).troubles
		return c
	}
	c.troubles = reports(namesFree(), over(jobsetv1alpha2.JobCreationFailure, reasonJobsCreated, messageJobsCreated)).troubles
	return c
}

// missingJobs returns the Jobs whose names are free, of the replicatedJobs that may start
// (docs/reference/jobset.md#creation-and-deletion), and whether there are more of them. The name of a Job that is being
// deleted is not free. No more are created than leaves the backlog of the Job controller within its bound.
func missingJobs(o Observed, owned children, w waits, waiting int) (missing []*batchv1.Job, more bool) {
	policy := o.JobSet.Spec.FailurePolicy
	if policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate && len(owned.previous) > 0 {
		return nil, false
	}
	free, more := bounded(freePlaces(o, owned, w), o.maxBacklog()-waiting, MaxBacklog)
	for _, place := range free {
		missing = append(missing, place.builder.build(place.index))
	}
	return missing, more
}

// freePlace is the place of a Job which does not exist.
type freePlace struct {
	builder *jobBuilder
	index   int32
}

// freePlaces returns the places of the missing Jobs one after the other, as there may be very many of them: from the one on
// whose turn it is, then those before it.
func freePlaces(o Observed, owned children, w waits) iter.Seq[change[freePlace]] {
	places, builders := positions(o.JobSet), newBuilders(o)
	between := func(begin, end int64, yield func(change[freePlace]) bool) bool {
		for i, at := range places {
			rj := &o.JobSet.Spec.ReplicatedJobs[i]
			for n := max(begin, at.first); !w.replicatedJobs[i] && n < min(end, at.first+int64(helper.Replicas(rj))); n++ {
				index := int32(n - at.first)
				if name := helper.JobName(o.JobSet.Name, rj.Name, index); owned.names.Has(name) || w.jobs.Has(name) {
					continue
				}
				builder := builders(i)
				if !yield(change[freePlace]{freePlace{builder, index}, builder.weight()}) {
					return false
				}
			}
		}
		return true
	}
	return func(yield func(change[freePlace]) bool) {
		if between(o.CreateFrom, math.MaxInt64, yield) {
			between(0, o.CreateFrom, yield)
		}
	}
}

// placeAfter returns the place in the set after that of a Job that is to be created, or after all Jobs of its replicatedJob.
func placeAfter(js *jobsetv1alpha2.JobSet, job *batchv1.Job, all bool) int64 {
	at := positions(js)
	for i := range js.Spec.ReplicatedJobs {
		switch rj := &js.Spec.ReplicatedJobs[i]; {
		case rj.Name != replicatedJobOf(job):
		case all:
			return at[i].first + int64(helper.Replicas(rj))
		default:
			return at[i].first + int64(jobIndex(job)) + 1
		}
	}
	return 0
}

// jobBuilder builds the Jobs of one replicatedJob (docs/reference/jobset.md#child-jobs). They share all that is equal, and nothing with the
// set, so that many of them take little memory. None may be changed.
type jobBuilder struct {
	o  Observed
	rj *jobsetv1alpha2.ReplicatedJob
	at position
	// common is what the Jobs share.
	common batchv1.JobSpec
	// placement are the annotations that ask for exclusive placement.
	placement map[string]string
	// domains are the domains that the Jobs have to themselves.
	domains domains.Jobs
	// avoided are the nodes that the pods keep off.
	avoided []string
	// groups are the groups that the pods belong to.
	groups gang.Names
	// byNodeSelector means that the pods run on nodes that an administrator has set aside for each Job.
	byNodeSelector bool
}

// newBuilders returns the builder for each replicatedJob, by its position in the spec. Each is made when it is needed first.
func newBuilders(o Observed) func(i int) *jobBuilder {
	places := positions(o.JobSet)
	builders := make([]*jobBuilder, len(places))
	return func(i int) *jobBuilder {
		if builders[i] == nil {
			builders[i] = newJobBuilder(o, &o.JobSet.Spec.ReplicatedJobs[i], places[i])
		}
		return builders[i]
	}
}

func newJobBuilder(o Observed, rj *jobsetv1alpha2.ReplicatedJob, at position) *jobBuilder {
	js := o.JobSet
	b := &jobBuilder{o: o, rj: rj, at: at, common: *rj.Template.Spec.DeepCopy(), placement: helper.Placement(js.Annotations,
		rj.Template.Annotations)}
	b.domains, b.groups = domainsOf(o, rj), groupNamesOf(&o, rj.Name)
	b.common.Suspend = ptr.To(suspended(js))
	pod := &b.common.Template.Spec
	if service := helper.ServiceName(js); service != "" {
		pod.Subdomain = service
	}
	pod.Volumes = append(pod.Volumes, claimVolumes(js, pod)...)
	if b.avoided = AvoidedNodes(js, o.Now.Time); len(b.avoided) > 0 {
		pod.Affinity = KeptOff(pod.Affinity, b.avoided)
	}
	annotations := hostplan.Merged(rj.Template.Annotations, b.placement)
	_, exclusive := annotations[jobsetv1alpha2.ExclusiveKey]
	_, byNodeSelector := annotations[jobsetv1alpha2.NodeSelectorStrategyKey]
	if b.byNodeSelector = exclusive && byNodeSelector; b.byNodeSelector {
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
			Key: jobsetv1alpha2.NoScheduleTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	return b
}

// weight is what the creation of one of the Jobs counts for.
func (b *jobBuilder) weight() int {
	job := &b.rj.Template.ObjectMeta
	return weightOf(len(job.Labels)+len(job.Annotations)+keysOf(&b.common.Template), MaxBacklog)
}

func (b *jobBuilder) build(index int32) *batchv1.Job {
	js := b.o.JobSet
	keys := identity(b.o, b.rj, b.at, index)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:      helper.JobName(js.Name, b.rj.Name, index),
			Namespace: js.Namespace,
			Labels:    hostplan.Merged(b.rj.Template.Labels, keys),
			Annotations: hostplan.Merged(b.rj.Template.Annotations, b.placement, annotated(js, &b.common.Template.Spec, keys), executionKeys(b.o),
				releaseKeys(js)),
			OwnerReferences: []metav1.OwnerReference{ownerReference(js)},
		},
		Spec: b.common,
	}
	if b.domains.ByScheduler(index) {
		job.Annotations[jobsetv1alpha2.PlacementKey] = jobsetv1alpha2.PlacementByAffinity
	}
	if len(b.avoided) > 0 {
		job.Annotations[jobsetv1alpha2.AvoidedNodesKey] = avoidedKey(b.avoided)
	}
	if template := b.groups.Of(index).Template; template != "" && b.groups.Provider == "" {
		job.Annotations[gang.TemplateKey] = template
	}
	job.Spec.Template = b.podTemplate(index, keys)
	return job
}

// template returns the pod template of a Job.
func (b *jobBuilder) template(index int32) corev1.PodTemplateSpec {
	return b.podTemplate(index, identity(b.o, b.rj, b.at, index))
}

func (b *jobBuilder) podTemplate(index int32, keys map[string]string) corev1.PodTemplateSpec {
	js, template := b.o.JobSet, b.common.Template
	template.Labels = hostplan.Merged(template.Labels, keys)
	template.Annotations = hostplan.Merged(template.Annotations, b.placement, annotated(js, &template.Spec, keys), executionKeys(b.o))
	if !b.byNodeSelector {
		labelPriority(b.o, &template)
	} else {
		template.Spec.NodeSelector = hostplan.Merged(template.Spec.NodeSelector, map[string]string{
			jobsetv1alpha2.NamespacedJobKey: js.Namespace + "_" + helper.JobName(js.Name, b.rj.Name, index),
		})
	}
	b.domains.Apply(&template, index)
	b.groups.Apply(&template, index)
	return template
}

// keysOf is the number of labels, annotations and node labels of a pod template.
func keysOf(template *corev1.PodTemplateSpec) int {
	return len(template.Labels) + len(template.Annotations) + len(template.Spec.NodeSelector)
}
