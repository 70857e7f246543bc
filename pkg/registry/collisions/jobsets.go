// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package collisions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchhelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	batchvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// jobSet warns of JobSets and SequentialJobs with Jobs of the same names, of a SequentialJob that needs the name for a
// step, and of others that need the Service.
func (l *look) jobSet(js *jobset.JobSet) {
	if validation.ManagedByOther(&js.Spec) {
		return // nothing is created here
	}
	if name, index := lwshelper.ParentAndOrdinal(js.Name); index >= 0 && batchhelper.ChildName(name, int(index)) == js.Name {
		if sj := l.sequenceNamed(name); sj != nil && !batchvalidation.ManagedByOther(&sj.Spec) && stepAt(sj, int(index)) == jobSetStep {
			l.Warn("step %d of the SequentialJob %q needs a JobSet of the same name, %q, and waits until this one is deleted", index, sj.Name,
				js.Name)
		}
	}
	l.service(js)
	l.jobs(js)
}

// service warns of others that need the Service of a JobSet. A JobSet uses a Service that exists, whoever owns it, and
// gets no addresses from it.
func (l *look) service(js *jobset.JobSet) {
	name := serviceOf(js)
	if name == "" {
		return
	}
	if set := l.setNamed(name); set != nil && !unique(set) {
		l.Warn("the LeaderWorkerSet %q needs a Service of the same name, %q; pods of the one that comes later have no DNS names", set.Name, name)
	}
	if name == js.Name {
		return
	}
	if other := l.jobSetNamed(name); other != nil && serviceOf(other) == name {
		l.Warn("the JobSet %q needs a Service of the same name, %q; pods of the one that comes later have no DNS names; use another "+
			"spec.network.subdomain", other.Name, name)
	}
}

// jobs warns of other objects that need Jobs with the names of the Jobs of a JobSet.
func (l *look) jobs(js *jobset.JobSet) {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if l.Ends() {
			return
		}
		if replicas(rj) < 1 {
			continue
		}
		prefix := js.Name + "-" + rj.Name
		l.jobsOfJobSets(prefix, 0, js.Name)
		l.jobsOfSequence(prefix, replicas(rj))
	}
}

// jobsOfJobSets warns of JobSets that need a Job with the prefix and the index, except for the JobSet of that name.
func (l *look) jobsOfJobSets(prefix string, index int32, except string) {
	l.Cuts(prefix, func(name, replicatedJob string) {
		if name == except {
			return
		}
		other := l.jobSetNamed(name)
		if other == nil || validation.ManagedByOther(&other.Spec) {
			return
		}
		for i := range other.Spec.ReplicatedJobs {
			if rj := &other.Spec.ReplicatedJobs[i]; rj.Name == replicatedJob && replicas(rj) > index {
				l.sameJob("JobSet", name, helper.JobName(name, replicatedJob, index))
			}
		}
	})
}

// jobsOfSequence warns of a sequence of the name with steps that need Jobs of the first indexes.
func (l *look) jobsOfSequence(name string, indexes int32) {
	sj := l.sequenceNamed(name)
	if sj == nil || batchvalidation.ManagedByOther(&sj.Spec) {
		return
	}
	for i := range min(int(indexes), steps(sj)) {
		if stepAt(sj, i) == jobStep {
			l.sameJob("SequentialJob", name, batchhelper.ChildName(name, i))
			return
		}
	}
}

func (l *look) sameJob(kind, name, job string) {
	l.Warn("the %s %q needs a Job of the same name, %q; the one that comes later waits for the name", kind, name, job)
}

// serviceOf returns the name of the Service of a JobSet; empty if it needs none.
func serviceOf(js *jobset.JobSet) string {
	network := js.Spec.Network
	if network == nil || !ptr.Deref(network.EnableDNSHostnames, false) || validation.ManagedByOther(&js.Spec) {
		return ""
	}
	if network.Subdomain != "" {
		return network.Subdomain
	}
	return js.Name
}

func replicas(rj *jobset.ReplicatedJob) int32 { return ptr.Deref(rj.Replicas, 1) }

// controls returns whether an object is the controller of another one.
func controls(owner, object metav1.Object) bool { return metav1.IsControlledBy(object, owner) }

// stepKind is the kind of the child of a step.
type stepKind int

const (
	noStep stepKind = iota
	jobStep
	jobSetStep
)

// steps returns the number of steps of a sequence.
func steps(sj *batch.SequentialJob) int {
	return len(sj.Spec.Containers) + len(sj.Spec.Steps) // one of them is empty
}

// stepAt returns the kind of the child of a step.
func stepAt(sj *batch.SequentialJob, index int) stepKind {
	switch inSteps := index - len(sj.Spec.Containers); {
	case index < 0 || inSteps >= len(sj.Spec.Steps):
		return noStep
	case inSteps >= 0 && sj.Spec.Steps[inSteps].JobSet != nil:
		return jobSetStep
	}
	return jobStep
}
