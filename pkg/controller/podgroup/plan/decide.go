// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	// statusEvery is how often counts alone are a reason to write the status of a PodReadinessGroup.
	statusEvery = time.Second
	// ownersEvery is how often owners are asked for their sizes while all of their pods run, and there should be more. It
	// is more than the age of sizes that are remembered, and leaves room for another pass in a minute.
	ownersEvery = 12 * time.Second
)

// Observed is one snapshot of a group. Nothing in it is changed.
type Observed struct {
	Prefix Prefix
	// Pods are the pods that carry the label of the group, in any order.
	Pods []*Pod
	// Group is the PodReadinessGroup of the name; nil if there is none.
	Group *batchv1alpha1.PodReadinessGroup
	// GroupUnknown means that there is a PodReadinessGroup of the name, and that the server cannot read it.
	GroupUnknown bool
	// ShowStatus means that the status of the PodReadinessGroup is about these pods, and not about those of another prefix.
	ShowStatus bool
	// Owners are the sizes of those owners that were read.
	Owners map[Owner]OwnerSize
	// OwnersError is why owners could not be read; empty if they could.
	OwnersError string
	// LabelProblem is why pods could not be labeled the last time.
	LabelProblem Problem
	// LastNew is when a pod was last added to the group.
	LastNew time.Time
	// Written is when the status of the PodReadinessGroup was last written.
	Written time.Time
	Now     time.Time
}

// Ref names one incarnation of a pod.
type Ref = hostplan.Ref

// Problem is what keeps users from what they want of a group. The zero Problem is none.
type Problem struct {
	// Pod is the first pod that has it.
	Pod Ref
	// Message says what is wrong, and why.
	Message string
	// Why is the reason alone, which is the same whichever pod is the first.
	Why string
}

// Figures are how far a group is.
type Figures struct {
	// Pods is the number of pods that count, Running the number of pods that run or have succeeded, and Labeled the number
	// of pods with the label.
	Pods, Running, Labeled int32
	// Size is the number of pods that the group is meant to have, and Source where that comes from. SizeKnown is false if the owners
	// could not be asked.
	Size      int32
	Source    Source
	SizeKnown bool
	// Ready means that enough pods run.
	Ready bool
}

// Plan is what to do about a group.
type Plan struct {
	Figures
	// Reason and Message say why the group is ready, or is not.
	Reason, Message string
	// Label are the pods that get the label, by name.
	Label []Ref
	// Status is the status of the PodReadinessGroup; nil if it is not to be written now.
	Status *batchv1alpha1.PodReadinessGroupStatus
	// Events are sent once the status is written.
	Events []Event
	// SizeProblem is what is wrong with the sizes that pods state.
	SizeProblem Problem
	// LookAgain is when to look again though nothing changes; 0 for never.
	LookAgain time.Duration
	// ActsAfter is the part of LookAgain after which the group may be ready; 0 for none.
	ActsAfter time.Duration
}

// Event is one about a PodReadinessGroup.
type Event = hostplan.Event

// Decide returns what to do about a group.
func Decide(o Observed) Plan {
	c, s := countPods(o), sizeOf(o)
	p := Plan{SizeProblem: s.problem}
	left := time.Duration(0)
	if s.mayGrow {
		left = max(0, o.LastNew.Add(StabilizationWindow).Sub(o.Now))
	}
	p.Figures = Figures{Pods: c.pods, Running: c.running, Labeled: c.labeled, Size: s.pods, Source: s.source, SizeKnown: !s.unread}
	enough := p.SizeKnown && p.Size > 0 && p.Running >= p.Size
	p.Ready = enough && left == 0
	switch {
	case p.Ready:
		p.Label = unlabeled(o, c.unlabeled)
	case enough:
		p.LookAgain, p.ActsAfter = left, left
	case o.OwnersError == "" && s.source == FromOwners && p.Running > 0 && p.Running == p.Pods:
		p.LookAgain = ownersEvery
	}
	p.explain(o, left)
	p.addStatus(o)
	return p
}

// counts are the counts of the pods of a group (docs/reference/batch.md#members).
type counts struct {
	// unlabeled is the number of pods that run and lack the label.
	pods, running, labeled, unlabeled int32
}

// counts returns whether a pod is one of the group. A failed one is gone, and so is one that is being deleted.
func (p *Pod) counts() bool { return !p.Terminating && p.Phase != Failed }

func countPods(o Observed) (c counts) {
	when := readyWhen(o.Group)
	for _, p := range o.Pods {
		if !p.counts() {
			continue
		}
		c.pods++
		if p.Labeled {
			c.labeled++
		}
		if p.runs(when) {
			c.running++
			if !p.Labeled {
				c.unlabeled++
			}
		}
	}
	return c
}

// unlabeled returns the pods that run and lack the label, of which there are n.
func unlabeled(o Observed, n int32) []Ref {
	if n == 0 {
		return nil
	}
	refs, when := make([]Ref, 0, n), readyWhen(o.Group)
	for _, p := range o.Pods {
		if p.counts() && !p.Labeled && p.runs(when) {
			refs = append(refs, Ref{Name: p.Name, UID: p.UID})
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return cmp.Compare(a.Name, b.Name) })
	return refs
}

// runs returns whether a pod runs, or has.
func (p *Pod) runs(when batchv1alpha1.ReadyWhen) bool {
	return p.Phase == Succeeded || p.Phase == Running && (p.Ready || when != batchv1alpha1.ReadyWhenReady)
}
