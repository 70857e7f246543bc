// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

const (
	// reasonForbidden is the reason of a gap that the user has no permission to read.
	reasonForbidden = "forbidden"
	// operatorRole is the role that comes with the installation and grants what a diagnosis reads.
	operatorRole = "jobset-operator"
)

// essentialWithJobs are the sources from which most causes of what consists of Jobs are known.
var essentialWithJobs = []string{"pods", "jobs", "events"}

// permissionMissing reports that the cause is not known because the user has no permission to read what shows it. What
// the set itself shows, such as how many Jobs are ready, is then a symptom and no cause.
func permissionMissing(d *diagnosis) []Finding {
	if _, cause := lastCause(d.JobSet); d.summary().State == helper.PhaseFailed && cause != nil || d.summary().State == helper.PhaseRunning &&
		d.allUp() {
		return nil
	}
	return cannotRead(d)
}

// cannotRead names the essential sources that the user has no permission to read.
func cannotRead(d *diagnosis) []Finding {
	var sources []string
	var facts []Fact
	for _, source := range d.kind().essential {
		if d.forbidden(source) {
			sources = append(sources, source)
			facts = append(facts, Fact{Object: source, Text: fmt.Sprintf(
				"forbidden: you have no permission to list %s in the namespace %s; the role %s grants it", source, d.Namespace, operatorRole)})
		}
	}
	if len(sources) == 0 {
		return nil
	}
	return []Finding{{
		Cause: CauseUnknown, Summary: "cause unknown: cannot read " + listed(sources), Evidence: facts,
		Commands: []string{
			d.kubectl("auth can-i list %s", sources[0]),
			d.kubectl("create rolebinding NAME --clusterrole=%s --user=USER  # run by an administrator", operatorRole),
		},
	}}
}

// forbidden reports whether the user has no permission to read the source.
func (e *Evidence) forbidden(source string) bool {
	return slices.Contains(e.NotLookedAt, Gap{source, reasonForbidden})
}

// withoutDoubt removes the finding that the cause is unknown if only events cannot be read and the pods show a cause.
func (d *diagnosis) withoutDoubt(findings []Finding) []Finding {
	shown := slices.ContainsFunc(findings, func(f Finding) bool { return f.Cause != CauseUnknown && rank(f.Cause) < rank(DependsOn) })
	if !shown || d.forbidden("pods") || d.forbidden(strings.ToLower(d.kind().children)) {
		return findings
	}
	return slices.DeleteFunc(findings, func(f Finding) bool { return f.Cause == CauseUnknown })
}

// listed joins words as a sentence does.
func listed(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return words[0]
}
