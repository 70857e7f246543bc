// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// maxStages is how many stages of a rolling update are shown.
const maxStages = 20

// maxPodName is the longest name of a pod that is also its host name.
const maxPodName = 63

// Lines implements View.
func (s *LeaderWorkerSetPreview) Lines(t cli.Terminal) []string {
	lines := s.heading(t)
	if s.Exists {
		lines = append(lines, renderChanges(s.Changes, t)...)
		lines = append(lines, s.Update.lines(t)...)
		color, text := s.updateConclusion()
		return append(lines, painted(color, text, t)...)
	}
	if s.Verdict.Answer != Accepted {
		return lines
	}
	lines = append(append(lines, ""), s.childLines(t)...)
	if len(s.Quota) > 0 {
		lines = append(append(lines, ""), renderQuota(s.Quota, t)...)
	}
	color, text := s.conclusion()
	return append(append(lines, ""), painted(color, text, t)...)
}

func (s *LeaderWorkerSetPreview) childLines(t cli.Terminal) []string {
	var rows [][]string
	also := [][]string{nil}
	for i := range s.Children {
		c := &s.Children[i]
		answer := "Not asked"
		if c.Verdict != nil {
			answer = paint(t, c.Verdict.Answer)
		}
		rows = append(rows, []string{c.Kind, c.Names, cli.Number(c.Count), answer})
		var more []string
		if c.Taken {
			more = append(more, "    "+t.Paint(cli.Bad, "exists already; the set would wait until it is gone"))
		}
		also = append(also, append(more, details("    ", c.Verdict, t)...))
	}
	var lines []string
	for i, line := range indented(childColumns, rows, t) {
		lines = append(append(lines, line), also[i]...)
	}
	if s.LongestPodName != "" {
		lines = append(lines, wrap("  ", fmt.Sprintf("The longest name of a pod, %s, has %d of at most %d characters.", s.LongestPodName,
			len(s.LongestPodName), maxPodName), t)...)
	}
	return lines
}

// lines describe what becomes of the replicas.
func (u *LeaderWorkerSetUpdate) lines(t cli.Terminal) []string {
	if u == nil {
		return nil
	}
	var lines []string
	if u.Rolls {
		text := fmt.Sprintf("Rolling update from revision %s to %s: %s may be unavailable at a time", u.From, u.To,
			cli.Count(int(u.AtATime), "group"))
		if u.Surge > 0 {
			text += fmt.Sprintf(", and %s above replicas may exist", cli.Count(int(u.Surge), "group"))
		}
		lines = append(lines, wrap("  ", text+".", t)...)
	}
	if len(u.Stages) > 0 {
		var parts []string
		for _, stage := range u.Stages[:min(len(u.Stages), maxStages)] {
			parts = append(parts, fmt.Sprintf("(%d, %d)", stage.Partition, stage.Replicas))
		}
		text := "If all groups are ready, partition and replicas of the leader StatefulSet become " + strings.Join(parts, " ")
		if more := len(u.Stages) - maxStages; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, wrap("  ", text+".", t)...)
	}
	return append(lines, "")
}

func (s *LeaderWorkerSetPreview) size() string {
	text := cli.Count(s.Groups, "group")
	if s.Groups != 0 && s.ReplicaSize > 1 {
		text += fmt.Sprintf(" of %d pods", s.ReplicaSize)
	}
	return text + ", " + cli.Count(s.Pods, "pod") + " in all"
}

func (s *LeaderWorkerSetPreview) conclusion() (cli.Color, string) {
	switch {
	case s.Refused():
		return cli.Bad, "Not all of this would be created: the set would not run as it is meant to."
	case s.unknown():
		return cli.Busy, "As far as your permissions show, the set would create " + s.size() + "."
	}
	return cli.Good, "The set would create " + s.size() + "."
}

// updateConclusion is the last sentence about a set that exists.
func (s *LeaderWorkerSetPreview) updateConclusion() (cli.Color, string) {
	has := func(effects ...Effect) bool {
		for i := range s.Changes {
			for _, effect := range effects {
				if s.Changes[i].Effect == effect {
					return true
				}
			}
		}
		return false
	}
	if s.Verdict.Answer != Accepted {
		return cli.Bad, "The set would not change at all."
	}
	if len(s.Changes) == 0 {
		return cli.Good, "The set would not change."
	}
	text := "The set would change in " + cli.Count(len(s.Changes), "field")
	switch {
	case has(EffectNever):
		return cli.Bad, text + ", and its update would fail: not all of the changes can be applied."
	case has(EffectRoll):
		text += ", and groups would be replaced."
	case has(EffectScale):
		text += ", and be scaled. The other groups run on."
	default:
		text += ". No pod would be stopped or started now."
	}
	return cli.Good, text
}
