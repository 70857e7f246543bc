// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// inParts returns decisions whose plans are full sooner than real ones: with so many creations, patches and deletions. Sets of
// some thousand Jobs get the same kind of plans.
func inParts(most int, decide func(plan.Observed) plan.Plan) func(plan.Observed) plan.Plan {
	return func(o plan.Observed) plan.Plan {
		p := decide(o)
		p.More = p.More || len(p.CreateJobs) > most || len(p.PatchJobs) > most || len(p.DeleteJobs) > most
		p.CreateJobs = p.CreateJobs[:min(most, len(p.CreateJobs))]
		p.PatchJobs, p.DeleteJobs = anyPart(o, p.PatchJobs, most), anyPart(o, p.DeleteJobs, most)
		return p
	}
}

// anyPart returns so many of the changes, from one on that follows from the time.
func anyPart[T any](o plan.Observed, all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	begin := int(o.Now.UnixMilli() % int64(len(all)))
	return append(append([]T(nil), all[begin:]...), all[:begin]...)[:most]
}
