// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// summary adds up runs.
type summary interface {
	add(run *archivev1alpha1.Run) error
	// print writes the summary for humans, csv for spreadsheets, and report returns it as data.
	print(f *cli.Factory) error
	csv(w io.Writer) error
	report(heading Heading) any
}

// mostRows bounds what a report keeps, and so the memory that it needs.
const mostRows = 100_000

// tooMany is the error of a report that would have to keep more.
func tooMany(what string) error {
	return fmt.Errorf("the runs have more than %s different %s: choose a shorter time with --since, or one namespace", cli.Number(mostRows),
		what)
}

// none stands for an empty value.
const none = "<none>"

// owners are the runs of SequentialJobs in the answer, by the UID of the object. A sequence ends after its steps, so a list
// with the last end first has its run before the runs of the steps.
type owners map[types.UID]string

// note remembers a run that may own others.
func (o owners) note(run *archivev1alpha1.Run) error {
	if run.Object.Kind != cli.SequentialJob.Title {
		return nil
	}
	if _, known := o[run.Object.UID]; !known && len(o) >= mostRows {
		return tooMany("SequentialJobs")
	}
	o[run.Object.UID] = run.User
	return nil
}

// of returns the user of the run that owns a run, if it is in the answer.
func (o owners) of(run *archivev1alpha1.Run) (user string, owned bool) {
	if run.Object.Owner == nil {
		return "", false
	}
	user, owned = o[run.Object.Owner.UID]
	return user, owned
}
