// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// maxMessage is the length of a message in bytes, and maxNamed how many sets and causes it names of each kind.
const (
	maxMessage = 1024
	maxNamed   = 3
)

// Message explains a shortage in one sentence, for a condition and for users who ask why.
func (s *Shortage) Message() string {
	if s == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of replicatedJob %q, with %s, %s a domain of %q", count(s.Jobs, "job", "jobs"), s.Group,
		count(s.Pods, "pod", "pods"), plural(s.Jobs, "needs", "each need"), s.Topology)
	if s.Others > 0 {
		fmt.Fprintf(&b, ", as %s %s of other replicatedJobs", plural(s.Others, "does", "do"), count(s.Others, "job", "jobs"))
	}
	if s.Domains == 0 {
		b.WriteString(": no node has that label")
	} else {
		fmt.Fprintf(&b, ": of %s, %s", count(s.Domains, "domain", "domains"), strings.Join(s.parts(), ", "))
	}
	if s.Closest != (Name{}) {
		fmt.Fprintf(&b, "; %q comes closest, with room for %d of %s", s.Closest, s.ClosestPods, count(s.Pods, "pod", "pods"))
		if s.Missing.Value > 0 {
			fmt.Fprintf(&b, " (%s %s missing)", formatAmount(s.Missing), s.Missing.Resource)
		}
	}
	if s.Unknown != 0 {
		fmt.Fprintf(&b, "; not considered: %s", s.Unknown)
	}
	return text.TruncateWithEllipsis(b.String(), maxMessage)
}

// parts says how many domains are in which state.
func (s *Shortage) parts() (out []string) {
	if s.Usable > 0 {
		out = append(out, fmt.Sprintf("%d %s free and %s room", s.Usable, plural(s.Usable, "is", "are"), plural(s.Usable, "has", "have")))
	}
	if s.Taken > 0 {
		takers := make([]string, 0, maxNamed)
		for _, taker := range s.TakenBy[:min(len(s.TakenBy), maxNamed)] {
			takers = append(takers, fmt.Sprintf("%s: %d", taker.Set, taker.Domains))
		}
		if more := s.Takers - len(takers); more > 0 {
			takers = append(takers, count(more, "other set", "other sets"))
		}
		out = append(out, fmt.Sprintf("%d %s taken by jobs (%s)", s.Taken, plural(s.Taken, "is", "are"), strings.Join(takers, ", ")))
	}
	if n, named := named(s.Lacking); n > 0 {
		out = append(out, fmt.Sprintf("%d %s room (%s)", n, plural(n, "lacks", "lack"), named))
	}
	if n, named := named(s.Unsuitable); n > 0 {
		out = append(out, fmt.Sprintf("%d %s no node for the pods (%s)", n, plural(n, "has", "have"), named))
	}
	return out
}

// named returns for how many domains causes hold, and the most frequent ones.
func named(causes []Cause) (n int, names string) {
	var out []string
	for i, cause := range causes {
		n += cause.Domains
		if i < maxNamed {
			out = append(out, fmt.Sprintf("%s: %d", cause.Reason, cause.Domains))
		}
	}
	if more := len(causes) - maxNamed; more > 0 {
		out = append(out, count(more, "other reason", "other reasons"))
	}
	return n, strings.Join(out, ", ")
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func count(n int, one, more string) string {
	return fmt.Sprintf("%d %s", n, plural(n, one, more))
}
