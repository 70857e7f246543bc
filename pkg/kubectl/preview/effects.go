// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"strings"
)

// Effect is what a change of a field does to a set that exists.
type Effect string

const (
	// EffectNone is that Jobs and pods do not change.
	EffectNone Effect = "None"
	// EffectImmediate is that the set behaves differently from now on, and no pod is stopped or started for it.
	EffectImmediate Effect = "Immediate"
	// EffectScale is that Jobs get more or fewer pods; the other pods run on.
	EffectScale Effect = "Scale"
	// EffectSuspend is that the pods of the set are deleted.
	EffectSuspend Effect = "Suspend"
	// EffectResume is that the set starts as a new attempt.
	EffectResume Effect = "Resume"
	// EffectOnResume is that pods have the change once the set is resumed.
	EffectOnResume Effect = "OnResume"
	// EffectNextAttempt is that only Jobs that are created from now on have the change, as after a restart.
	EffectNextAttempt Effect = "NextAttempt"
	// EffectNextStep is that steps of a sequence which have not started have the change.
	EffectNextStep Effect = "NextStep"
	// EffectRestart is that the current step of a sequence is stopped, and runs again with the change.
	EffectRestart Effect = "Restart"
	// EffectRoll is that groups are replaced one after another by a rolling update.
	EffectRoll Effect = "Roll"
	// EffectNever is that the server accepts the change, and that it never has an effect.
	EffectNever Effect = "Never"
	// EffectNextReplica is that groups which are created from now on have the change.
	EffectNextReplica Effect = "NextGroup"
	// EffectRefused is that the server does not accept the change.
	EffectRefused Effect = "Refused"
)

// refusedFields marks the changes that the causes of a refusal are about.
func refusedFields(changes []Change, problems []string) {
	for i := range changes {
		for _, problem := range problems {
			field, _, _ := strings.Cut(problem, ": ")
			if within(changes[i].Field, field) || within(field, changes[i].Field) {
				changes[i].Effect = EffectRefused
			}
		}
	}
}

// within returns whether a field is the section, or a part of it.
func within(field, section string) bool {
	rest, found := strings.CutPrefix(field, section)
	return found && section != "" && section != "spec" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
