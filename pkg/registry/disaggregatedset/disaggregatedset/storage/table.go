// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// columns are the columns of upstream, and after them our columns, which clients show with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the set, unique in its namespace"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Phase", Type: "string", Priority: 1, Description: "summary of the state: Pending, Progressing, Available or Terminating"},
	{Name: "Ready", Type: "string", Priority: 1, Description: "groups of all roles that are ready, of all groups"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "why the set is in the phase, in one word; blank while all roles are ready"},
}

// NewTable prints DisaggregatedSets.
func NewTable() rest.TableConvertor {
	return table.Convertor[*disaggregatedset.DisaggregatedSet]{Columns: columns, Row: row}
}

// row returns the cells of the columns.
func row(hub *disaggregatedset.DisaggregatedSet, age string) []any {
	var ds disaggregatedsetv1.DisaggregatedSet
	utilruntime.Must(disaggregatedsetv1.Convert_disaggregatedset_DisaggregatedSet_To_v1_DisaggregatedSet(hub, &ds, nil))
	s := helper.Summarize(&ds)
	return []any{ds.Name, age, s.Phase, fmt.Sprintf("%d/%d", s.Ready, s.Wanted), table.Text(s.Reason)}
}
