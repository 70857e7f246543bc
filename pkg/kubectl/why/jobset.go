// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobSet is the Diagnoser of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (*Report, error) {
	return explain(ctx, c, setKind(), name, Diagnose)
}

// setKind is the kind JobSet.
func setKind() *kind {
	return &kind{
		Kind: cli.JobSet, noun: "set", label: jobsetv1alpha2.JobSetNameKey, children: "jobs", readChildren: (*loader).readJobs,
		essential: essentialWithJobs, top: true, controls: "JobSets", queued: "JobSets", unqueue: unqueueSet,
		read: (*loader).readSet, assemble: (*loader).assembleSet, more: (*loader).readMoreOfSet, list: listSets,
	}
}

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

func listSets(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return l.JobSets.JobsetV1alpha2().JobSets(namespace).List(ctx, options)
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

// Load reads what a diagnosis of the set needs.
func Load(ctx context.Context, c *cli.Clients, name string) (*Evidence, error) {
	return load(ctx, c, setKind(), name)
}
