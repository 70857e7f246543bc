// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// Rules, by the names under which they are broken.
const (
	ruleReady    = "a pod gets the label only if it ran in a group that was ready in the last 30 s"
	ruleAgain    = "a pod that is known to have the label is not patched again"
	ruleStatus   = "a status says only what held in the last 30 s"
	ruleOf       = "a status is stored in the PodReadinessGroup for which it was decided"
	ruleOutcome  = "the time at which a group became ready stays, and its events follow its phase"
	ruleVisible  = "every refusal is visible within a minute"
	ruleReported = "a refusal is reported once"
)

// lag is how old what the controller sees may be, and fresh how old sizes are at most when pods are labeled. window is
// the stabilization window.
const (
	lag    = 30 * time.Second
	fresh  = time.Second
	window = 2 * time.Second
)

// checkLabel checks a patch when the controller decides to send it.
func (p *process) checkLabel(prefix int, podName string, uid types.UID) {
	if known, found := p.labeled[uid]; found && known == p.unlabeled[uid] {
		p.Fail(ruleAgain, "pod %s (%s)", podName, uid)
	}
	groupsSince := p.syncBegan.Add(-lag)
	if p.firstLabels(prefix) && !p.groupUnread {
		groupsSince = p.syncBegan // before the first label, what serves groups is asked
	}
	stable := p.seen[prefix].stable
	var last figures
	for _, jobs := range p.past.jobs.since(p.syncBegan.Add(-fresh)) {
		for _, groups := range p.past.groups.since(groupsSince) {
			for _, pods := range p.past.pods.since(p.syncBegan.Add(-lag)) {
				last = count(prefix, pods, one(groups), jobs)
				if last.runs[uid] && last.enough() && (stable || !last.mayGrow) {
					return
				}
			}
		}
	}
	p.Fail(ruleReady, "pod %s (%s) of prefix %d gets the label; it was last %+v, stable: %t", podName, uid, prefix, last, stable)
}

// firstLabels returns whether the controller saw no pod of the prefix with the label.
func (p *process) firstLabels(prefix int) bool { return p.seen[prefix].labeled == 0 }

func one(groups []*batchv1alpha1.PodReadinessGroup) *batchv1alpha1.PodReadinessGroup {
	if len(groups) == 0 {
		return nil
	}
	return groups[0]
}

// checkStatus checks a status when the controller decides to write it.
func (p *process) checkStatus(group *batchv1alpha1.PodReadinessGroup) {
	s := &group.Status
	ready := meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionReady)
	if ready == nil || s.ObservedGeneration != group.Generation || ready.ObservedGeneration != group.Generation {
		p.Fail(ruleStatus, "of generation %d: %+v", group.Generation, s)
	}
	if (s.Phase == batchv1alpha1.GroupReady) != (ready.Status == metav1.ConditionTrue) || (s.Phase == batchv1alpha1.GroupPending) != (s.ReadyTime == nil) {
		p.Fail(ruleOutcome, "phase %s, ready at %v, condition %s", s.Phase, s.ReadyTime, ready.Status)
	}
	for prefix := range prefixes {
		for _, jobs := range p.past.jobs.since(p.syncBegan.Add(-lag)) {
			for _, pods := range p.past.pods.since(p.syncBegan.Add(-lag)) {
				f := count(prefix, pods, group, jobs)
				if int(s.Pods) == f.pods && int(s.Running) == f.running && int(s.Ready) == f.labeled && p.explains(f, prefix, ready.Reason) {
					return
				}
			}
		}
	}
	p.Fail(ruleStatus, "%d pods, %d running, %d ready: %s (%s)", s.Pods, s.Running, s.Ready, ready.Reason, ready.Message)
}

// explains returns whether the reason of the condition is the right one.
func (p *process) explains(f figures, prefix int, reason string) bool {
	switch reason {
	case plan.ReasonPodsRunning:
		return f.enough() && (p.seen[prefix].stable || !f.mayGrow)
	case plan.ReasonSettling:
		return (f.mayGrow || f.unclear) && f.running > 0 // a failed pod that was not replaced counts
	case plan.ReasonSizeUnknown:
		return p.jobUnread
	}
	return !f.enough() || f.unclear
}

// checkVisible checks that what is refused is visible.
func (p *process) checkVisible() {
	for of, began := range p.refused {
		if p.Since(began) <= time.Minute {
			continue
		}
		reason := plan.EventLabelFailed
		if of.request == getJob {
			reason = plan.EventSizeUnknown
		}
		n := 0
		for _, event := range p.events {
			later, about := event.at.Sub(began), strings.Contains(event.note, denied)
			// Pods that failed a moment before, for another reason, are reported as long as they are not tried again.
			if event.reason == reason && later <= time.Minute && (about && later >= 0 || !about && later >= -time.Minute) {
				n++
			}
		}
		if n == 0 {
			p.Fail(ruleVisible, "%s of prefix %d is refused since %s, and no event says so", of.request, of.prefix, p.Since(began))
		}
		p.Seen["refusals made visible: "+of.request]++
	}
}

// checkMessage checks that the condition says what was refused in the last sync.
func (p *process) checkMessage() {
	group := p.group()
	if group == nil || p.aggregated.Refusals[updateGroup] != nil || p.aggregated.Refusals[getGroup] != nil {
		return
	}
	prefix := shown(p.env)
	ready := meta.FindStatusCondition(group.Status.Conditions, batchv1alpha1.ConditionReady)
	for _, request := range []string{patchPod, getJob} {
		if p.refusedNow[about{request, prefix}] && (ready == nil || !strings.Contains(ready.Message, denied)) {
			p.Fail(ruleVisible, "%s is refused, and the condition is %+v", request, ready)
		}
	}
}

// shown is the prefix that the status is about: the first one that has pods.
func shown(e *env) int {
	for _, pod := range e.pods.Objects {
		if prefixOf(pod) == 0 {
			return 0
		}
	}
	for _, pod := range e.pods.Objects {
		if prefixOf(pod) == 1 {
			return 1
		}
	}
	return 0
}
