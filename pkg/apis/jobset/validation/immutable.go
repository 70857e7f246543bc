// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

const (
	// immutable is what users read about every field that must stay as it was created.
	immutable = "cannot be changed after creation; delete and recreate the JobSet"
	// fieldIsImmutable begins what they read about replicatedJobs and managedBy. Clients of upstream look for these words.
	fieldIsImmutable = "field is immutable"
	// fieldImmutable is the same as immutable for these fields.
	fieldImmutable = fieldIsImmutable + ": " + immutable
)

// always explains fields that can never be changed.
func always(string) string { return immutable }

const whileSuspended = fieldIsImmutable + " unless the JobSet is suspended: set spec.suspend to true"

var (
	directives = regexp.MustCompile(`\.template\.spec\.template\.` +
		`(metadata\.(labels|annotations)|spec\.(nodeSelector|tolerations|schedulingGates))\b`)
	resources   = regexp.MustCompile(`\.spec\.(containers|initContainers)\[\d+\]\.resources\.(requests|limits)\b`)
	elasticSize = regexp.MustCompile(`^spec\.replicatedJobs\[\d+\]\.template\.spec\.(parallelism|completions)$`)
)

// jobChanges returns what users can do about a change of a field of replicatedJobs.
func jobChanges(suspended bool, opts gates.Gates) func(path string) string {
	return func(path string) string {
		switch {
		case elasticSize.MatchString(path) && !opts.ElasticJobSet:
			return fieldIsImmutable + " while the feature gate ElasticJobSet of the API server is off; delete and recreate the JobSet"
		case elasticSize.MatchString(path):
			return fieldIsImmutable + " unless completionMode is Indexed; delete and recreate the JobSet"
		case suspended:
			return fieldImmutable
		case directives.MatchString(path), opts.MutablePodResourcesForSuspendedJobSets && resources.MatchString(path):
			return whileSuspended
		}
		return fieldImmutable
	}
}
