// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// mostChanges is how many changes are shown.
const mostChanges = 50

// renderUpdate returns the changes of a set that exists.
func renderUpdate(s *Set, t cli.Terminal) []string {
	return append(renderChanges(s.Changes, t), painted(s.updateColor(), s.updateConclusion(), t)...)
}

// renderChanges returns the changes of an object that exists, with an empty line behind them.
func renderChanges(changes []Change, t cli.Terminal) []string {
	var lines []string
	if len(changes) > 0 {
		lines = append(lines, "")
	}
	for i := range changes[:min(mostChanges, len(changes))] {
		c := &changes[i]
		lines = append(lines, wrap("  ", cli.Clean(fmt.Sprintf("%s: %s -> %s", c.Field, valueText(c.Live), valueText(c.Next))), t)...)
		switch {
		case c.Effect == EffectRefused:
			lines = append(lines, "    "+t.Paint(cli.Bad, "refused"))
		case c.Text != "":
			for _, line := range wrap("    ", c.Text, t) {
				lines = append(lines, t.Paint(effectColors[c.Effect], line))
			}
		}
	}
	if more := len(changes) - mostChanges; more > 0 {
		lines = append(lines, "  and "+cli.Count(more, "more change")+"; -o diff shows all of them")
	}
	return append(lines, "")
}

var effectColors = map[Effect]cli.Color{
	EffectNone: cli.Quiet, EffectNextAttempt: cli.Quiet, EffectOnResume: cli.Quiet, EffectScale: cli.Busy, EffectSuspend: cli.Busy,
	EffectResume:   cli.Busy,
	EffectNextStep: cli.Quiet, EffectRestart: cli.Busy, EffectRoll: cli.Busy, EffectNever: cli.Bad, EffectNextReplica: cli.Quiet,
}

func (s *Set) updateColor() cli.Color {
	if s.Verdict.Answer != Accepted {
		return cli.Bad
	}
	return cli.Good
}

// updateConclusion is the last sentence about a set that exists.
func (s *Set) updateConclusion() string {
	has := func(effect Effect) bool {
		return slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Effect == effect })
	}
	size := cli.Count(s.Jobs, "Job") + " with " + cli.Count(s.Pods, "pod")
	switch {
	case s.Verdict.Answer != Accepted && has(EffectRefused):
		return "The set would not change at all. To make these changes, delete the set and create it again: " + size +
			" would start from the beginning."
	case s.Verdict.Answer != Accepted:
		return "The set would not change at all."
	case len(s.Changes) == 0:
		return "The set would not change."
	}
	text := "The set would change in " + cli.Count(len(s.Changes), "field")
	switch {
	case has(EffectSuspend):
		text += ", and be suspended: its pods would be deleted."
	case has(EffectResume):
		text += ", and be resumed."
	case has(EffectScale):
		text += ", and be scaled. No other pod would be stopped."
	default:
		text += ". No pod would be stopped or started."
	}
	return text
}

// place is the index of a replicatedJob in the field of a problem.
var place = regexp.MustCompile(`^spec\.replicatedJobs\[(\d+)\]`)

// joined returns the replicatedJobs with each problem and warning that several of them have at the first of them only, with the indices
// of all: spec.replicatedJobs[0,2-3].
func joined(from []ReplicatedJob) []ReplicatedJob {
	out := slices.Clone(from)
	for _, of := range []func(*ReplicatedJob) **Verdict{
		func(rj *ReplicatedJob) **Verdict { return &rj.Job }, func(rj *ReplicatedJob) **Verdict { return &rj.Pod },
	} {
		places := map[string][]int{}
		for i := range out {
			if v := *of(&out[i]); v != nil {
				for _, text := range slices.Concat(v.Problems, v.Warnings) {
					if found := place.FindStringSubmatch(text); found != nil && found[1] == strconv.Itoa(i) {
						places[text[len(found[0]):]] = append(places[text[len(found[0]):]], i)
					}
				}
			}
		}
		for i := range out {
			if v := of(&out[i]); *v != nil {
				*v = &Verdict{Answer: (*v).Answer, Problems: atFirst((*v).Problems, i, places), Warnings: atFirst((*v).Warnings, i, places)}
			}
		}
	}
	return out
}

// atFirst returns the texts of the replicatedJob at index i with all indices, without those that an earlier one has.
func atFirst(texts []string, i int, places map[string][]int) (out []string) {
	for _, text := range texts {
		rest := strings.TrimPrefix(text, fmt.Sprintf("spec.replicatedJobs[%d]", i))
		if at := places[rest]; rest != text && len(at) > 1 {
			if at[0] != i {
				continue
			}
			text = fmt.Sprintf("spec.replicatedJobs[%s]%s", ranges(at), rest)
		}
		out = append(out, text)
	}
	return out
}
