// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// listed is a kind that the command lists.
type listed struct {
	cli.Kind
	// tabled means that the table of the server has all that a row needs.
	tabled bool
	client func(*cli.Clients) rest.Interface
	// rows decodes a list of objects, and row one object.
	rows func(content []byte) ([]Row, metav1.ListMeta, error)
	row  func(content []byte) (Row, error)
}

// kinds are the kinds that the command lists, in the order of cli.Kinds.
var kinds = []*listed{
	{
		Kind: cli.JobSet, tabled: true, client: func(c *cli.Clients) rest.Interface { return c.JobSets.JobsetV1alpha2().RESTClient() },
		rows: rowsOf(func(l *jobsetv1alpha2.JobSetList) ([]jobsetv1alpha2.JobSet, metav1.ListMeta) {
			return l.Items, l.ListMeta
		}, rowOf), row: decoded(rowOf),
	},
	{
		Kind: cli.SequentialJob, client: func(c *cli.Clients) rest.Interface { return c.JobSets.BatchV1alpha1().RESTClient() },
		rows: rowsOf(func(l *batchv1alpha1.SequentialJobList) ([]batchv1alpha1.SequentialJob, metav1.ListMeta) {
			return l.Items, l.ListMeta
		}, rowOfSequence),
		row: decoded(rowOfSequence),
	},
	{
		Kind: cli.LeaderWorkerSet, client: func(c *cli.Clients) rest.Interface { return c.JobSets.LeaderworkersetV1().RESTClient() },
		rows: rowsOf(func(l *leaderworkersetv1.LeaderWorkerSetList) ([]leaderworkersetv1.LeaderWorkerSet, metav1.ListMeta) {
			return l.Items, l.ListMeta
		}, rowOfLeaderWorkerSet),
		row: decoded(rowOfLeaderWorkerSet),
	},
	{
		Kind: cli.DisaggregatedSet, client: func(c *cli.Clients) rest.Interface { return c.JobSets.DisaggregatedsetV1().RESTClient() },
		rows: rowsOf(func(l *disaggregatedsetv1.DisaggregatedSetList) ([]disaggregatedsetv1.DisaggregatedSet, metav1.ListMeta) {
			return l.Items, l.ListMeta
		}, rowOfRoles),
		row: decoded(rowOfRoles),
	},
}

// phases are the phases of all kinds.
var phases = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(helper.Phases),
	string(batchv1alpha1.PhaseWaiting), lwshelper.PhaseAvailable, lwshelper.PhaseProgressing, lwshelper.PhaseUpdating,
	lwshelper.PhasePaused, helper.PhaseUnreadable))))

func rowsOf[L, O any](items func(*L) ([]O, metav1.ListMeta), row func(*O) Row) func([]byte) ([]Row, metav1.ListMeta, error) {
	return func(content []byte) ([]Row, metav1.ListMeta, error) {
		var list L
		if err := json.Unmarshal(content, &list); err != nil {
			return nil, metav1.ListMeta{}, fmt.Errorf("reading the answer of the server: %w", err)
		}
		objects, meta := items(&list)
		rows := make([]Row, 0, len(objects))
		for i := range objects {
			rows = append(rows, row(&objects[i]))
		}
		return rows, meta, nil
	}
}

func decoded[O any](row func(*O) Row) func([]byte) (Row, error) {
	return func(content []byte) (Row, error) {
		var object O
		if err := json.Unmarshal(content, &object); err != nil {
			return Row{}, fmt.Errorf("reading a change: %w", err)
		}
		return row(&object), nil
	}
}

// rowOf derives the row from the JobSet itself, for servers whose tables have no phase.
func rowOf(js *jobsetv1alpha2.JobSet) Row {
	s := helper.Summarize(js)
	r := Row{Kind: cli.JobSet.Title, Phase: s.Phase, Reason: s.Reason, Ready: s.Jobs.Up, Wanted: s.Jobs.Wanted, Attempt: s.Attempt,
		LastAttempt: s.LastAttempt}
	r.describe(&js.ObjectMeta)
	return r
}

func rowOfSequence(sj *batchv1alpha1.SequentialJob) Row {
	s := snapshot.SummarizeSequence(sj)
	r := Row{Kind: cli.SequentialJob.Title, Phase: s.State, Reason: s.Reason, Ready: int64(s.Succeeded), Wanted: int64(s.StepCount)}
	r.describe(&sj.ObjectMeta)
	return r
}

func rowOfLeaderWorkerSet(set *leaderworkersetv1.LeaderWorkerSet) Row {
	s := snapshot.SummarizeLeaderWorkerSet(set)
	r := Row{Kind: cli.LeaderWorkerSet.Title, Phase: s.State, Reason: s.Reason, Ready: int64(s.ReplicasReady),
		Wanted: int64(s.ReplicasWanted)}
	r.describe(&set.ObjectMeta)
	return r
}

// rowOfRoles counts the groups of all roles.
func rowOfRoles(set *disaggregatedsetv1.DisaggregatedSet) Row {
	s := snapshot.SummarizeRoles(set)
	r := Row{Kind: cli.DisaggregatedSet.Title, Phase: s.State, Reason: s.Reason, Ready: int64(s.ReplicasReady),
		Wanted: int64(s.ReplicasWanted)}
	r.describe(&set.ObjectMeta)
	return r
}

// shortOf is the shortest word for the kind of a row.
func (r *Row) shortOf() string {
	at := slices.IndexFunc(cli.Kinds, func(k cli.Kind) bool { return k.Title == r.Kind })
	return cli.Kinds[max(at, 0)].Short()
}

// byKind compares the kinds of rows, in the order of the kinds.
func byKind(a, b *Row) int {
	place := func(r *Row) int {
		return slices.IndexFunc(cli.Kinds, func(k cli.Kind) bool { return k.Title == r.Kind })
	}
	return cmp.Compare(place(a), place(b))
}
