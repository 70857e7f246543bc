// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "k8s.io/apimachinery/pkg/types"

// Asks are what a decision depends on and the snapshot does not have. A plan that asks for something holds nothing else:
// the decision is made once more on a snapshot with the answers. An answer may be that something could not be obtained,
// so that a decision never asks twice.
type Asks struct {
	// Causes asks for entries of Observed.Causes.
	Causes []MissingCause
}

// MissingCause is a group that the decision is about to record as recreated, without knowing why it failed.
type MissingCause struct {
	// Leader is the UID of the leader pod, by which Observed.Causes has the cause.
	Leader types.UID
	// Name is the name of the leader pod, and of the StatefulSet of the workers.
	Name string
	// Workers is the UID of that StatefulSet; empty if there is none.
	Workers types.UID
}

// Questions names what a plan asks for; none for a plan that can be carried out.
func (p Plan) Questions() (questions []string) {
	if len(p.Asks.Causes) > 0 {
		questions = append(questions, "first causes")
	}
	return questions
}

// missingCause names the pods that may say why a group has failed: the leader, and those of the StatefulSet of its workers.
func missingCause(g *group) MissingCause {
	m := MissingCause{Leader: g.leader.UID, Name: g.leader.Name}
	if g.workers != nil {
		m.Workers = g.workers.UID
	}
	return m
}
