// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record reads the archive of runs: one run, or pages of runs. It also puts what a run says into words, which have no control
// characters, and returns the object that ran.
package record

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Kinds are the kinds of objects whose runs are recorded.
var Kinds = []cli.Kind{cli.JobSet, cli.SequentialJob, cli.LeaderWorkerSet}

// States are how runs end.
var States = []string{
	string(archivev1alpha1.RunCompleted), string(archivev1alpha1.RunFailed), string(archivev1alpha1.RunCancelled),
	string(archivev1alpha1.RunDeleted),
}

// Get returns a run of the namespace with its details.
func Get(ctx context.Context, c *cli.Clients, name string) (*archivev1alpha1.Run, error) {
	run, err := c.JobSets.ArchiveV1alpha1().Runs(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !cli.IsNotServed(err) {
		return nil, fmt.Errorf("%w in the namespace %s; `kubectl jobset history` lists the runs", err, c.Namespace)
	}
	if err != nil {
		return nil, explain(err)
	}
	return run, nil
}

// unable is how the library begins its own message about a server that is away.
const unable = "the server is currently unable to handle the request"

// explain adds to an error of the archive what it means for the user. What kube-apiserver says about a server that it does not reach is
// explained like that of other kinds.
func explain(err error) error {
	name := cli.Run.GroupVersion.Version + "." + cli.Run.GroupVersion.Group
	switch {
	case cli.IsNotServed(err):
		return &cli.ExplainedError{Err: err, Text: "This cluster serves no archive of runs: jobset-apiserver is older than the archive, or " +
			"there is no APIService " + name + "."}
	case apierrors.IsServiceUnavailable(err) && !strings.Contains(err.Error(), unable):
		return &cli.ExplainedError{Err: err, Text: "Only the archive of runs does not answer. JobSets and the other kinds do not depend on it."}
	}
	return err
}

// JobSet returns the set as it was at the end of its run. It is nil if another kind ran, or if the run lacks the details.
func JobSet(run *archivev1alpha1.Run) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metaOf(run)}
	if !decode(run, cli.JobSet, &js.Spec, &js.Status) {
		return nil
	}
	return js
}

// SequentialJob returns the sequence as it was at the end of its run. It is nil if another kind ran, or if the run lacks the details.
func SequentialJob(run *archivev1alpha1.Run) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{ObjectMeta: metaOf(run)}
	if !decode(run, cli.SequentialJob, &sj.Spec, &sj.Status) {
		return nil
	}
	return sj
}

// metaOf is what a run knows of the metadata of the object that ran.
func metaOf(run *archivev1alpha1.Run) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: run.Namespace, Name: run.Object.Name, UID: run.Object.UID, CreationTimestamp: run.Object.CreationTime,
		Labels: run.Labels, Annotations: run.Annotations,
	}
}

// decode reads the details of a run of a kind. A later version of the kind may have other fields, so it is not read.
func decode(run *archivev1alpha1.Run, kind cli.Kind, spec, status any) bool {
	if run.Details == nil || run.Object.Kind != kind.Title || run.Object.APIVersion != kind.GroupVersion.String() {
		return false
	}
	for _, part := range []struct {
		raw  []byte
		into any
	}{{run.Details.Spec.Raw, spec}, {run.Details.Status.Raw, status}} {
		if len(part.raw) == 0 || json.Unmarshal(part.raw, part.into) != nil {
			return false
		}
	}
	return true
}
