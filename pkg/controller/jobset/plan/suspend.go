// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// jobChanges is what becomes of the active Jobs.
type jobChanges struct {
	patches []JobPatch
	// more means that a later plan has more to patch.
	more bool
	// resumed is how many of the patches let a Job wait for the Job controller.
	resumed int
	resumption
}

// resumption is how many more Jobs may be resumed, and whether others are not, because too many wait for the Job controller.
type resumption struct {
	left        int
	backlogFull bool
}

// duePatch is a patch, and whether its Job waits for the Job controller once it is made.
type duePatch struct {
	JobPatch
	waits bool
}

// jobPatches suspends, resumes and resizes the active Jobs (docs/reference/jobset.md#suspend-and-resume). No more are
// resumed than leaves the backlog of the Job controller, for which so many Jobs wait, within its bound.
func jobPatches(w work, waiting int) jobChanges {
	o := w.Observed
	active := inSpecOrder(o.JobSet, w.owned.active)
	p := jobChanges{resumption: resumption{left: max(0, o.maxBacklog()-waiting)}}
	inTurn := maxChanges
	if w.toResume > p.left {
		inTurn = 0
	}
	due, more := bounded(duePatches(o, active, w.waits, inTurn, &p.resumption), maxChanges, maxChanges)
	for _, patch := range due {
		if p.patches = append(p.patches, patch.JobPatch); patch.waits {
			p.resumed++
		}
	}
	p.more = more || p.backlogFull
	return p
}

// duePatches returns the patches of the active Jobs one after the other, from any of them on if they are more than inTurn.
func duePatches(o Observed, active []child, w waits, inTurn int, r *resumption) iter.Seq[change[duePatch]] {
	builders := newBuilders(o)
	return func(yield func(change[duePatch]) bool) {
		for n := range rotated(o, len(active), inTurn) {
			job := active[n]
			if job.DeletionTimestamp != nil {
				continue
			}
			rj := &o.JobSet.Spec.ReplicatedJobs[job.place]
			patch := duePatch{JobPatch: JobPatch{JobRef: refTo(job), ResourceVersion: job.ResourceVersion, Size: resized(&o, rj, job.Job)}}
			switch {
			case suspended(o.JobSet) && !jobSuspended(job.Job):
				suspend(o, job.Job, &patch.JobPatch)
			case w.resumes(&o, job) && !mustBeReplaced(&o, job):
				r.resume(o, job, func() *jobBuilder { return builders(job.place) }, &patch)
			}
			if patch.Suspend == nil && patch.Size == nil {
				continue
			}
			if !yield(change[duePatch]{patch, weightOf(keysOf(&rj.Template.Spec.Template)+keysOf(&job.Spec.Template), maxChanges)}) {
				return
			}
		}
	}
}

// resume resumes a Job, unless it would wait for the Job controller and may not.
func (r *resumption) resume(o Observed, job child, builder func() *jobBuilder, patch *duePatch) {
	elsewhere := managedElsewhere(&o, job)
	if !elsewhere && r.left == 0 {
		r.backlogFull = true
		return
	}
	resume(builder(), job, &patch.JobPatch)
	if patch.waits = patch.Suspend != nil && !elsewhere; patch.waits {
		r.left--
	}
}

// suspend stops a Job, and marks it as stopped with the set. Without the mark, a Job stopped on account of an outdated
// snapshot would look as if another controller had stopped it.
func suspend(o Observed, job *batchv1.Job, patch *JobPatch) {
	patch.Suspend = ptr.To(true)
	if mark := suspensionMark(o.JobSet); job.Annotations[jobsetv1alpha2.ReleasedKey] != mark {
		patch.Annotations, patch.Unannotated = map[string]string{jobsetv1alpha2.ReleasedKey: mark}, job.Annotations == nil
	}
}

// suspendedByOthers reports whether another controller, like a queueing system that evicted the Job, or a user has suspended
// it since it was released. Resuming it would only be undone. It is resumed with the set, or by whoever suspended it.
func suspendedByOthers(o *Observed, job *batchv1.Job) bool {
	return job.Annotations[jobsetv1alpha2.ReleasedKey] == released(o.JobSet)
}

// resume lets a Job run with the scheduling directives that the set has now. Upstream only adds directives, so that what
// an earlier admission by a queueing system put there stays for ever; here the Job gets exactly those of the set.
func resume(builder *jobBuilder, job child, patch *JobPatch) {
	o, template := builder.o, builder.template(job.index)
	wanted, current := directives(&template), directives(&job.Spec.Template)
	keep(wanted.Labels, current.Labels)
	keep(wanted.Annotations, current.Annotations)
	maps.Copy(wanted.Annotations, executionKeys(o))
	if o.Gates.MutablePodResourcesForSuspendedJobSets {
		wanted.Resources = changedResources(&template.Spec, &job.Spec.Template.Spec)
	}
	if !equality.Semantic.DeepEqual(wanted, current) {
		if job.Status.Active > 0 {
			return // the Job API refuses the change until the pods are gone; the Job tells when they are
		}
		wanted.OldLabels, wanted.OldAnnotations = maps.Clone(current.Labels), maps.Clone(current.Annotations)
		patch.Directives = &wanted
		patch.ClearStartTime = job.Status.StartTime != nil
	}
	patch.Suspend = ptr.To(false)
	patch.Annotations, patch.Unannotated = hostplan.Merged(releaseKeys(o.JobSet), executionKeys(o)), job.Annotations == nil
}

// changedResources returns the resources of those containers of a Job for which the set has others. Containers are the
// same by name; what only one side has is left alone.
func changedResources(wanted, current *corev1.PodSpec) []ContainerResources {
	return append(changedOf(true, wanted.InitContainers, current.InitContainers), changedOf(false, wanted.Containers, current.Containers)...)
}

func changedOf(initContainers bool, wanted, current []corev1.Container) []ContainerResources {
	var changed []ContainerResources
	for index := range current {
		at := slices.IndexFunc(wanted, func(c corev1.Container) bool { return c.Name == current[index].Name })
		if at < 0 {
			continue
		}
		next := *wanted[at].Resources.DeepCopy()
		next.Claims = slices.Clone(current[index].Resources.Claims)
		if !equality.Semantic.DeepEqual(next, current[index].Resources) {
			changed = append(changed, ContainerResources{Init: initContainers, Index: index, Resources: next})
		}
	}
	return changed
}

// directives returns those of the template, which they share.
func directives(template *corev1.PodTemplateSpec) Directives {
	return Directives{
		Labels:          template.Labels,
		Annotations:     template.Annotations,
		NodeSelector:    template.Spec.NodeSelector,
		Tolerations:     template.Spec.Tolerations,
		SchedulingGates: template.Spec.SchedulingGates,
	}
}

// keep takes the keys that belong to the Job and not to the template of the set from what the Job has.
func keep(wanted, current map[string]string) {
	kept := func(key, _ string) bool { return keptOnResume(key) }
	maps.DeleteFunc(wanted, kept)
	for key, value := range current {
		if keptOnResume(key) {
			wanted[key] = value
		}
	}
}

// ComparedOnResume reports whether a decision depends on a label or annotation of the pod template of a suspended Job. All
// others may be missing in what is observed: they stay as they are.
func ComparedOnResume(key string) bool {
	return !keptOnResume(key) || key == jobsetv1alpha2.ExecutionAttemptKey
}

// keptOnResume reports whether a key of the pod template was set for the life of the Job: by the Job API, which refuses
// its loss, or as part of the identity of the Job.
func keptOnResume(key string) bool {
	switch key {
	case "controller-uid", "job-name":
		return true
	case jobsetv1alpha2.PriorityKey: // depends on where the Job is placed
		return false
	}
	return within(key, "jobset.sigs.k8s.io") || within(key, "batch.kubernetes.io") || within(key, "alpha.jobset.sigs.k8s.io")
}

// within reports whether the prefix of a key, as a whole, is the one asked for. It is asked for every key of every Job that
// the cache gets.
func within(key, prefix string) bool {
	return strings.HasPrefix(key, prefix) && (len(key) == len(prefix) || key[len(prefix)] == '/')
}
