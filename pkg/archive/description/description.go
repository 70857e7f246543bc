// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package description has what the descriptions of runs of all kinds share: what follows from the metadata of an object, and what pods
// request over time. How far an object is says the package of its kind.
package description

import (
	"cmp"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	runs "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/creator"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

const (
	// queueKey and priorityKey are labels of Kueue, which all kinds have.
	queueKey    = "kueue.x-k8s.io/queue-name"
	priorityKey = "kueue.x-k8s.io/priority-class"

	// maxItems is the number of failures and of children of a run, and maxMessage the length of a message in bytes.
	maxItems, maxMessage = 100, 1024
	// maxAnnotation is the length of an annotation that is kept. Longer ones are left out, since a part of a value is another value.
	maxAnnotation = 1024
)

// Kind is what the runs of a kind have in common.
type Kind struct {
	// Served is the kind, in the version in which runs show its objects.
	Served schema.GroupVersionKind
	// Owners are the kinds whose controllers create objects of the kind.
	Owners []schema.GroupKind
	// Annotations are the annotations that runs keep. All labels are kept.
	Annotations []string
}

// Run returns the run of an object, with all that follows from the metadata of the object.
func (k Kind) Run(object metav1.Object, execution int32) *archive.Run {
	run := &archive.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Labels: maps.Clone(object.GetLabels()), Annotations: k.kept(object)},
		Object: archive.RunObject{
			APIVersion: k.Served.GroupVersion().String(), Kind: k.Served.Kind, Name: object.GetName(), UID: object.GetUID(),
			NamespaceUID: types.UID(object.GetAnnotations()[namespaceuid.Annotation]), Execution: execution,
			CreationTime: object.GetCreationTimestamp(), Owner: k.owner(object),
		},
		User:  text.Truncate(object.GetAnnotations()[creator.Annotation], creator.MaxBytes),
		Queue: object.GetLabels()[queueKey], PriorityClass: object.GetLabels()[priorityKey],
	}
	key := runs.KeyOf(run)
	run.Name, run.UID = key.Name(object.GetName()), key.UID()
	return run
}

// kept returns the annotations that runs keep; nil for none.
func (k Kind) kept(object metav1.Object) map[string]string {
	var kept map[string]string
	for _, key := range k.Annotations {
		if value, has := object.GetAnnotations()[key]; has && len(value) <= maxAnnotation {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

func (k Kind) owner(object metav1.Object) *archive.RunOwner {
	ref := metav1.GetControllerOfNoCopy(object)
	if ref == nil || !slices.Contains(k.Owners, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()) {
		return nil
	}
	return &archive.RunOwner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
}

// Times are when a run began and ended. The end is the present for a run that goes on. A run never ends before it begins: clocks of
// machines differ.
func Times(run *archive.Run, begin, end time.Time) {
	if end.Before(begin) {
		end = begin
	}
	run.BeginTime = metav1.NewMicroTime(begin.Truncate(time.Microsecond))
	run.EndTime = metav1.NewMicroTime(end.Truncate(time.Microsecond))
}

// WorksUntil returns until when an object does work, if it has not ended: until now, or until its deletion was requested, which finalizers
// may delay.
func WorksUntil(object metav1.Object, now time.Time) time.Time {
	if deleted := object.GetDeletionTimestamp(); deleted != nil && deleted.Time.Before(now) {
		return deleted.Time
	}
	return now
}

// Message shortens a message to the limit of runs.
func Message(message string) string { return text.Truncate(message, maxMessage) }

// Failure returns the failure that the first cause of an attempt describes.
func Failure(attempt int32, child string, cause *jobset.FailureCause) archive.RunFailure {
	return archive.RunFailure{
		Attempt: attempt, Child: child, Pod: cause.Pod, Node: cause.Node, Container: cause.Container, ExitCode: copied(cause.ExitCode),
		Signal: copied(cause.Signal), Reason: cause.Reason, Message: Message(cause.Message), Time: cause.Time.DeepCopy(),
	}
}

func copied(value *int32) *int32 {
	if value == nil {
		return nil
	}
	return ptr.To(*value)
}

// Failures returns the newest failures, as many as a run has.
func Failures(all []archive.RunFailure) []archive.RunFailure { return all[max(0, len(all)-maxItems):] }

// Children returns the first children, as many as a run has.
func Children(all []archive.RunChild) []archive.RunChild { return all[:min(len(all), maxItems)] }

// PriorityClass sets the priority class of a run to the first that its pods name, unless a label names one for the queue.
func PriorityClass(run *archive.Run, ofPods ...string) {
	run.PriorityClass = cmp.Or(append([]string{run.PriorityClass}, ofPods...)...)
}

// PodsOfJob returns how many pods a Job runs at once.
func PodsOfJob(spec *batchv1.JobSpec) int64 {
	parallelism := int64(ptr.Deref(spec.Parallelism, 1))
	if spec.Completions != nil {
		parallelism = min(parallelism, int64(*spec.Completions))
	}
	return max(parallelism, 0)
}
