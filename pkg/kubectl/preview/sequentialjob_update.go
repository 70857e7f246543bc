// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// describeUpdate explains what each change does.
func (p *sequencePreviewer) describeUpdate(live, next *batchv1alpha1.SequentialJob) {
	if helper.ManagedElsewhere(next) {
		p.out.note("the controller %q runs the sequence, which spec.managedBy names: what changes do is not known here", *next.Spec.ManagedBy)
		return
	}
	p.out.describe(sequenceUpdate{live: live, next: next}.effect)
}

// sequenceUpdate is a change of a sequence that exists.
type sequenceUpdate struct {
	live, next *batchv1alpha1.SequentialJob
}

// stepPath are fields of a step.
var stepPath = regexp.MustCompile(`^spec\.(?:containers|steps)\[(\d+)\]`)

// effect returns what the change of a field does, once the server has accepted it.
func (u sequenceUpdate) effect(field string) (Effect, string) {
	section, _, _ := strings.Cut(strings.TrimPrefix(field, "spec."), ".")
	section, _, _ = strings.Cut(section, "[")
	switch {
	case field == child("metadata.labels", helper.QueueKey):
		return EffectNextStep, "children that are created from now on are in the queue"
	case strings.HasPrefix(field, "metadata."):
		return EffectNone, "no Job and no pod changes"
	case section == "ttlSecondsAfterFinished":
		return u.ttlEffect()
	case helper.Finished(u.next) != nil:
		return EffectNone, "the sequence has finished; a retry uses it"
	case section == "suspend":
		return u.suspendEffect()
	case section == "activeDeadlineSeconds":
		return EffectImmediate, "the limit counts from the start of the sequence: one that has run longer fails at once"
	case section == "updateStrategy":
		return EffectImmediate, "decides what changes of steps do from now on"
	}
	return u.stepEffect(field)
}

func (u sequenceUpdate) ttlEffect() (Effect, string) {
	seconds := u.next.Spec.TTLSecondsAfterFinished
	if seconds == nil {
		return EffectImmediate, "the sequence is kept after it has finished"
	}
	return EffectImmediate, fmt.Sprintf("the sequence is deleted with its children %d seconds after it has finished", *seconds)
}

func (u sequenceUpdate) suspendEffect() (Effect, string) {
	was, is := helper.Suspended(u.live), helper.Suspended(u.next)
	switch {
	case was == is:
		return EffectNone, "no Job and no pod changes"
	case is:
		return EffectSuspend, "suspends the sequence: the pods of " + u.stepWords() + " are deleted, and no other step starts"
	}
	return EffectResume, "resumes the sequence with " + u.stepWords()
}

// current is the index of the step that runs or is next, and started whether it has been started.
func (u sequenceUpdate) current() (index int, started bool) {
	step := helper.CurrentStep(&u.live.Status)
	return helper.CurrentIndex(&u.live.Status), step != nil && step.State != batchv1alpha1.StepPending
}

func (u sequenceUpdate) stepWords() string {
	index, _ := u.current()
	if steps := helper.Steps(&u.next.Spec); index < len(steps) {
		return "step " + steps[index].Name
	}
	return "the last step"
}

// stepEffect is the effect of a change of steps, or of what they share: it depends on whether the step that runs is one of them, and on the
// update strategy.
func (u sequenceUpdate) stepEffect(field string) (Effect, string) {
	index, started := u.current()
	ofCurrent := started && !helper.EqualStep(&u.live.Spec, &u.next.Spec, index)
	if found := stepPath.FindStringSubmatch(field); found != nil {
		changed, err := strconv.Atoi(found[1])
		ofCurrent = ofCurrent && err == nil && changed == index
	}
	switch {
	case !ofCurrent:
		return EffectNextStep, "steps that start from now on have it"
	case u.live.Spec.UpdateStrategy != nil && u.live.Spec.UpdateStrategy.Type == batchv1alpha1.UpdateRestart:
		return EffectRestart, "stops " + u.stepWords() + ", and runs it again with the change (updateStrategy Restart)"
	}
	return EffectNextStep, u.stepWords() + " continues as it was started (updateStrategy Continue); steps that start from now on " +
		"have it"
}
