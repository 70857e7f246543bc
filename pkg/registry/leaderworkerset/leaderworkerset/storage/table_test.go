// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

func TestRow(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas *int32
		status   leaderworkerset.LeaderWorkerSetStatus
		want     []any
	}{
		"a new set has blank cells":       {replicas: ptr.To[int32](2), want: []any{"a", nil, int64(2), nil, "5s"}},
		"counts":                          {replicas: ptr.To[int32](3), status: leaderworkerset.LeaderWorkerSetStatus{ReadyReplicas: 1, UpdatedReplicas: 2}, want: []any{"a", int64(1), int64(3), int64(2), "5s"}},
		"a set without groups desires 0":  {replicas: ptr.To[int32](0), want: []any{"a", nil, int64(0), nil, "5s"}},
		"a number of groups is not known": {want: []any{"a", nil, nil, nil, "5s"}},
	} {
		lws := &leaderworkerset.LeaderWorkerSet{Status: tc.status}
		lws.Name, lws.Spec.Replicas = "a", tc.replicas
		if diff := cmp.Diff(tc.want, row(lws, "5s")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var names []string
	for _, column := range columns {
		names = append(names, column.Name)
		if column.Priority != 0 {
			t.Errorf("%s is shown with -o wide only", column.Name)
		}
	}
	if diff := cmp.Diff([]string{"Name", "Ready", "Desired", "Up-to-date", "Age"}, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
