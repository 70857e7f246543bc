// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package suspect

import (
	"slices"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Class is what a failure says about its node.
type Class int

// The classes of failures.
const (
	// Other failures were caused by decisions of others: evictions, preemptions, deadlines, and pods whose image or volume is missing.
	Other Class = iota
	// Program failures come from a container that ended by itself or used too much memory.
	Program
	// Infrastructure failures come from a node: it was lost or shut down, or could not start or hold the pod.
	Infrastructure
)

// ofNode are the reasons that kubelets and the container runtime give for a failure of their own, beside interruptions.
var ofNode = map[string]bool{
	helper.ReasonUnassigned: true, "ContainerStatusUnknown": true, helper.ReasonRunContainerError: true, "NodeNotReady": true,
}

// ofProgram are the reasons of containers that ended by themselves. StartError and ContainerCannotRun come from a command that does not
// exist at least as often as from a node.
var ofProgram = map[string]bool{
	helper.ReasonOOMKilled: true, helper.ReasonError: true, "Completed": true, helper.ReasonStartError: true,
	helper.ReasonContainerCannotRun: true,
}

// ClassOf returns the class of a failure. A failure with an exit code whose reason is not known is one of the program.
func ClassOf(reason string, hasExitCode bool) Class {
	switch interruption := helper.InterruptionOf(reason); {
	case interruption == helper.LostNode, ofNode[reason]:
		return Infrastructure
	case interruption != "":
		return Other
	case ofProgram[reason], hasExitCode:
		return Program
	}
	return Other
}

// Classes are the classes of the failures of a run on a node.
type Classes uint8

// Has returns whether one of the failures is of the class.
func (c Classes) Has(class Class) bool { return c&(1<<class) != 0 }

// Nodes returns the nodes on which attempts of the run failed first. Failures of steps that are JobSets are left out: these have runs of
// their own, which say more.
func Nodes(run *archivev1alpha1.Run) map[string]Classes {
	var out map[string]Classes
	for i := range run.Failures {
		f := &run.Failures[i]
		if f.Node == "" || recordedApart(run, f.Child) {
			continue
		}
		if out == nil {
			out = map[string]Classes{}
		}
		out[f.Node] |= 1 << ClassOf(f.Reason, f.ExitCode != nil)
	}
	return out
}

// recordedApart returns whether a child has a run of its own.
func recordedApart(run *archivev1alpha1.Run, child string) bool {
	return slices.ContainsFunc(run.Children, func(c archivev1alpha1.RunChild) bool { return c.Name == child && c.Kind == "JobSet" })
}
