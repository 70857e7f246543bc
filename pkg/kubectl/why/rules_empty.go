// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

// empty says that the spec of a set asks for no Jobs, so that it neither runs nor ends.
func (d *diagnosis) empty() Finding {
	f := Finding{
		Cause:    NoJobs,
		Summary:  "the spec asks for no jobs: all replicatedJobs have 0 replicas; the set waits, and never completes",
		Evidence: []Fact{{Object: d.set(), Text: "spec.replicatedJobs have 0 replicas in all"}},
		Commands: []string{d.kubectl("get jobset %s -o yaml", d.Name)},
	}
	if len(d.JobSet.Spec.ReplicatedJobs) == 0 {
		f.Summary = "the spec has no replicatedJobs, so that no jobs are created and the set never completes; delete it, and create it with a " +
			"spec"
		f.Evidence[0].Text = "spec.replicatedJobs is empty"
		f.Commands = append(f.Commands, d.kubectl("delete jobset %s", d.Name))
	}
	return f
}
