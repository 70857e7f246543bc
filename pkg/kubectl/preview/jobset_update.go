// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// describeUpdate explains what each change does.
func (p *previewer) describeUpdate(live, next *jobsetv1alpha2.JobSet) {
	p.js = next
	p.count(next)
	if manager := ptr.Deref(next.Spec.ManagedBy, ""); manager != "" && manager != jobsetv1alpha2.JobSetControllerName {
		p.out.note("the controller %q runs the set, which spec.managedBy names: what changes do is not known here", manager)
		return
	}
	p.out.describe(update{live: live, next: next}.effect)
}

// count says how large the set is. A set whose change is refused would have to be deleted and created again.
func (p *previewer) count(js *jobsetv1alpha2.JobSet) { p.out.Jobs, p.out.Pods = jobsOf(js), podsOf(js) }

// update is a change of a set that exists.
type update struct {
	live, next *jobsetv1alpha2.JobSet
}

// sizePath and podPath are fields of a replicatedJob that may change.
var (
	sizePath = regexp.MustCompile(`^spec\.replicatedJobs\[(\d+)\]\.template\.spec\.(parallelism|completions)$`)
	podPath  = regexp.MustCompile(`^spec\.replicatedJobs\[\d+\]\.template\.spec\.template\.`)
)

// effect returns what the change of a field does, once the server has accepted it.
func (u update) effect(field string) (Effect, string) {
	finished, _ := helper.Finished(u.next)
	section, _, _ := strings.Cut(strings.TrimPrefix(field, "spec."), ".")
	switch {
	case strings.HasPrefix(field, "metadata."):
		return u.metadataEffect(field, finished)
	case section == "ttlSecondsAfterFinished":
		return u.ttlEffect(finished)
	case finished != "":
		return EffectNone, "the set has finished"
	case section == "suspend":
		return u.suspendEffect()
	case sizePath.MatchString(field):
		return u.scaleEffect(sizePath.FindStringSubmatch(field)[1])
	case podPath.MatchString(field), section == "scheduling":
		return u.templateEffect()
	}
	return u.sectionEffect(section)
}

func (u update) metadataEffect(field, finished string) (Effect, string) {
	switch {
	case finished != "":
		return EffectNone, ""
	case field == child("metadata.labels", jobsetv1alpha2.QueueNameKey):
		return EffectImmediate, "the queue decides when the set runs"
	case field == child("metadata.annotations", jobsetv1alpha2.ExclusiveKey),
		field == child("metadata.annotations", jobsetv1alpha2.NodeSelectorStrategyKey):
		return EffectNextAttempt, "only Jobs that are created from now on carry it, as after a restart"
	}
	return EffectNone, "no Job and no pod changes"
}

func (u update) ttlEffect(finished string) (Effect, string) {
	seconds := u.next.Spec.TTLSecondsAfterFinished
	switch {
	case seconds == nil:
		return EffectImmediate, "the set is kept after it has finished"
	case finished != "":
		return EffectImmediate, fmt.Sprintf("the set has finished, and is deleted %d seconds after its end", *seconds)
	}
	return EffectImmediate, fmt.Sprintf("the set is deleted %d seconds after it has finished", *seconds)
}

func (u update) suspendEffect() (Effect, string) {
	was, is := helper.Suspended(u.live), helper.Suspended(u.next)
	size := cli.Count(jobsOf(u.next), "Job") + " with " + cli.Count(podsOf(u.next), "pod")
	switch {
	case was == is:
		return EffectNone, "no Job and no pod changes"
	case is:
		return EffectSuspend, "suspends the set: the pods are deleted, the Jobs stay (" + size + ")"
	}
	return EffectResume, "resumes the set as a new attempt: " + size
}

func (u update) scaleEffect(index string) (Effect, string) {
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(u.next.Spec.ReplicatedJobs) {
		return EffectScale, ""
	}
	rj := &u.next.Spec.ReplicatedJobs[i]
	text := fmt.Sprintf("scales %s of %s to %s each", cli.Count(int(helper.Replicas(rj)), "Job"), rj.Name,
		cli.Count(int(ptr.Deref(rj.Template.Spec.Parallelism, 1)), "pod"))
	if helper.Suspended(u.next) {
		return EffectOnResume, text + " once the set is resumed"
	}
	return EffectScale, text + "; the pods that stay run on"
}

// templateEffect is the effect of a pod template, or of the groups of pods, which may change only while the set is suspended.
func (u update) templateEffect() (Effect, string) {
	if helper.Suspended(u.next) {
		return EffectOnResume, "pods have it once the set is resumed"
	}
	return EffectResume, "pods have it from this resume on"
}

// sectionEffects are the effects of the sections of the spec that may be added, changed or removed.
var sectionEffects = map[string]struct {
	effect Effect
	text   string
}{
	"activeDeadlineSeconds": {EffectImmediate, "the limit counts from the start of the set: a set that has run longer fails at once"},
	"coordinator":           {EffectNextAttempt, "only Jobs that are created from now on carry it, as after a restart"},
	"failurePolicy":         {EffectImmediate, "applies to the next failure of a Job"},
	"successPolicy":         {EffectImmediate, "decides from now on when the set is complete"},
	"startupPolicy":         {EffectNextAttempt, "applies when Jobs are created, as after a restart"},
	"network":               {EffectNextAttempt, "only pods of Jobs that are created from now on have it, as after a restart"},
	"volumeClaimPolicies":   {EffectNextAttempt, "only pods of Jobs that are created from now on have the volumes, as after a restart"},
}

func (u update) sectionEffect(section string) (Effect, string) {
	found, known := sectionEffects[section]
	if !known {
		return "", ""
	}
	return found.effect, found.text
}

// jobsOf and podsOf are how many Jobs and pods a set has when all of it runs.
func jobsOf(js *jobsetv1alpha2.JobSet) int { return int(helper.TotalReplicas(js)) }

func podsOf(js *jobsetv1alpha2.JobSet) (n int) {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		n += int(helper.Replicas(rj)) * int(snapshot.JobSize(&batchv1.Job{Spec: rj.Template.Spec}))
	}
	return n
}
