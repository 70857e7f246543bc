// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// columns are the columns of upstream, and after them one of ours, which clients show with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the LeaderWorkerSet, unique in its namespace"},
	{Name: "Ready", Type: "integer", Description: "Number of ready replicas"},
	{Name: "Desired", Type: "integer", Description: "Number of desired replicas"},
	{Name: "Up-to-date", Type: "integer", Description: "Number of up-to-date replicas"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "what keeps the set from having all its groups, in one word; blank while " +
		"nothing does"},
}

// row returns the cells of the columns. A count of 0 is absent on the wire, and its cell is blank, as for a custom resource.
func row(lws *leaderworkerset.LeaderWorkerSet, age string) []any {
	var desired any
	if lws.Spec.Replicas != nil {
		desired = int64(*lws.Spec.Replicas)
	}
	if unreadable.Is(lws) {
		return []any{lws.Name, nil, nil, nil, age, unreadable.Phase}
	}
	return []any{lws.Name, count(lws.Status.ReadyReplicas), desired, count(lws.Status.UpdatedReplicas), age,
		table.Text(helper.Reason(lws.Status.Conditions))}
}

func count(n int32) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}
