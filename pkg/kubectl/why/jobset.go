// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// subject is the object that is explained, as rules see it which hold for every kind.
type subject interface {
	metav1.Object
	// manager is the controller that runs it instead of the built-in one; "" for the built-in one.
	manager() string
	// ended returns whether it has completed or failed permanently.
	ended() bool
	// observed returns whether a controller has acted on it.
	observed() bool
	// failedOn is the node of its last failure; "" if none is known.
	failedOn() string
}

// kind is a kind of subject: the words for it, and how it is read.
type kind struct {
	cli.Kind
	// noun is how sentences call it, and prefix what commands of the plugin have before its name.
	noun, prefix string
	// label is the label of its children and their pods, with its name.
	label string
	// children are what the object consists of, as sentences call them, and readChildren reads them and essential are the
	// sources without which most causes are not known.
	children     string
	readChildren func(*loader, context.Context)
	essential    []string
	// podsOfChildren means that pods are diagnosed with the children of the object, and are read only if the object cannot be.
	podsOfChildren bool
	// gate is the feature gate that turns on the kind in both programs; "" for one that is always on.
	gate string
	// top reports that `kubectl jobset top` takes it.
	top bool
	// controls is what its controller is for, as in "the controller of JobSets".
	controls string
	// queued are the objects that Kueue has to manage, and unqueue the commands that take the object out of its queue.
	queued  string
	unqueue func(*diagnosis) []string
	// read reads the object, and assemble keeps those of its children that matter.
	read     func(*loader, context.Context) error
	assemble func(*loader)
	// more are the readings that only this kind needs, once the object is known.
	more func(*loader) []func(context.Context)
	// names lists objects of the kind.
	names func(context.Context, *loader, string, metav1.ListOptions) ([]types.NamespacedName, error)
}

// setKind is the kind JobSet.
func setKind() *kind {
	return &kind{
		Kind: cli.JobSet, noun: "set", label: jobsetv1alpha2.JobSetNameKey, children: "jobs", readChildren: (*loader).readJobs,
		essential: essentialWithJobs, top: true, controls: "JobSets", queued: "JobSets", unqueue: unqueueSet,
		read: (*loader).readSet, assemble: (*loader).assembleSet, more: (*loader).readMoreOfSet, names: setNames,
	}
}

// kind is the kind of the object; JobSet unless it was read as another one.
func (e *Evidence) kind() *kind {
	if e.of == nil {
		return setKind()
	}
	return e.of
}

// subject is the object; nil if it could not be read.
func (e *Evidence) subject() subject {
	switch {
	case e.JobSet != nil:
		return setSubject{e.JobSet}
	case e.Sequence != nil:
		return sequenceSubject{e.Sequence}
	case e.Set != nil:
		return groupsSubject{e.Set}
	case e.RolesSet != nil:
		return rolesSubject{e.RolesSet}
	}
	return nil
}

// apiService is the name of the APIService of the kind.
func (k *kind) apiService() string { return k.GroupVersion.Version + "." + k.GroupVersion.Group }

// setSubject is a JobSet as a subject.
type setSubject struct{ *jobsetv1alpha2.JobSet }

func (s setSubject) manager() string {
	if managedElsewhere(s.JobSet) {
		return *s.Spec.ManagedBy
	}
	return ""
}

func (s setSubject) ended() bool { return finished(s.JobSet) }

func (s setSubject) observed() bool {
	return len(s.Status.Conditions) > 0 || len(s.Status.ReplicatedJobsStatus) > 0
}

func (s setSubject) failedOn() string {
	if _, cause := lastCause(s.JobSet); cause != nil {
		return cause.Node
	}
	return ""
}

func unqueueSet(d *diagnosis) []string {
	return []string{d.kubectl("label jobset %s %s-", d.Name, jobsetv1alpha2.QueueNameKey), d.plugin("resume %s", d.ref())}
}

// setNames lists JobSets.
func setNames(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) ([]types.NamespacedName, error) {
	list, err := l.JobSets.JobsetV1alpha2().JobSets(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
	}
	return names, nil
}

// readSet reads a JobSet.
func (l *loader) readSet(ctx context.Context) (err error) {
	js, err := l.JobSets.JobsetV1alpha2().JobSets(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	if err == nil {
		l.e.JobSet = js
	}
	return err
}

// assembleSet keeps the Jobs and pods of a JobSet.
func (l *loader) assembleSet() {
	s := snapshot.Assemble(l.e.JobSet, l.jobs, l.pods, l.e.Now)
	l.e.Jobs, l.e.Pods = s.Jobs, s.Pods
	for i := range l.jobs {
		if uid := l.jobs[i].Labels[jobsetv1alpha2.JobSetUIDKey]; uid != "" && uid != string(l.e.JobSet.UID) {
			l.e.FormerJobs = append(l.e.FormerJobs, &l.jobs[i])
		}
	}
}

// readMoreOfSet are the readings for the rules that only JobSets have.
func (l *loader) readMoreOfSet() []func(context.Context) {
	d := newDiagnosis(l.e)
	return []func(context.Context){
		func(ctx context.Context) {
			queue := l.e.JobSet.Labels[jobsetv1alpha2.QueueNameKey]
			l.readKueue(ctx, l.e.JobSet, queue)
			if queue == "" && helper.Suspended(l.e.JobSet) && metav1.GetControllerOfNoCopy(l.e.JobSet) == nil {
				l.readWorkload(ctx, l.e.JobSet) // Kueue may be told to suspend what names no queue
			}
		},
		func(ctx context.Context) { l.readService(ctx, d) },
		func(ctx context.Context) { l.readTakenJobs(ctx, takenNames(d)) },
		func(ctx context.Context) { l.readPlacement(ctx, d) },
		l.readGangs,
	}
}
