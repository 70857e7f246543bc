// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// columns are the columns of upstream, and after them our columns, which clients show with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the LeaderWorkerSet, unique in its namespace"},
	{Name: "Ready", Type: "integer", Description: "Number of ready replicas"},
	{Name: "Desired", Type: "integer", Description: "Number of desired replicas"},
	{Name: "Up-to-date", Type: "integer", Description: "Number of up-to-date replicas"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Phase", Type: "string", Priority: 1, Description: "summary of the state: Pending, Progressing, Updating, Paused, Available, " +
		"Failed or Terminating"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "why the set is in the phase, in one word; blank while all groups are ready " +
		"and updated"},
}

// NewTable prints LeaderWorkerSets.
func NewTable() rest.TableConvertor {
	return table.Convertor[*leaderworkerset.LeaderWorkerSet]{Columns: columns, Row: row}
}

// row returns the cells of the columns. A count of 0 is absent on the wire, and its cell is blank, as for a custom resource.
func row(hub *leaderworkerset.LeaderWorkerSet, age string) []any {
	var lws leaderworkersetv1.LeaderWorkerSet
	utilruntime.Must(leaderworkersetv1.Convert_leaderworkerset_LeaderWorkerSet_To_v1_LeaderWorkerSet(hub, &lws, nil))
	s := helper.Summarize(&lws)
	var desired any
	if lws.Spec.Replicas != nil {
		desired = int64(*lws.Spec.Replicas)
	}
	if s.Phase == helper.PhaseUnreadable {
		return []any{lws.Name, nil, nil, nil, age, s.Phase, s.Reason}
	}
	return []any{lws.Name, count(lws.Status.ReadyReplicas), desired, count(lws.Status.UpdatedReplicas), age, s.Phase,
		table.Text(s.Reason)}
}

func count(n int32) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}
