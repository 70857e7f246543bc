// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readinessgroup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Report is what -o json prints. Its fields are described in docs/kubectl.md.
type Report struct {
	Items []Row `json:"items"`
	// Notes say what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Row is one group.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// LabelPrefix is the prefix of the label keys: the part before the slash.
	LabelPrefix string `json:"family"`
	// Size is the number of pods that the group is meant to have, and Source what says so. Both are absent if it is not known.
	Size   int32       `json:"size,omitempty"`
	Source plan.Source `json:"source,omitempty"`
	// Pods, Running and Ready count the pods that exist, that run or have succeeded, and that carry the ready label.
	Pods    int32                                `json:"pods"`
	Running int32                                `json:"running"`
	Ready   int32                                `json:"ready"`
	State   batchv1alpha1.PodReadinessGroupPhase `json:"state"`
	// Message says what the group waits for.
	Message string `json:"message"`
	// ReadyWhen is what counts for a pod.
	ReadyWhen batchv1alpha1.ReadyWhen `json:"readyWhen"`
	// PodReadinessGroup is true if there is one of the name.
	PodReadinessGroup bool `json:"podReadinessGroup"`
	// CreateTime is the creation time of the PodReadinessGroup, or else of the oldest pod.
	CreateTime metav1.Time `json:"createTime"`
}

// columns are the columns for humans. Narrow terminals leave out those that matter least.
func columns(allNamespaces, wide bool) []cli.Column {
	shown := []cli.Column{
		{Title: "NAME"}, {Title: "FAMILY", Drop: 4}, {Title: "SIZE"}, {Title: "SOURCE", Drop: 3}, {Title: "PODS", Drop: 1}, {Title: "RUNNING"},
		{Title: "READY"},
		{Title: "STATE"}, {Title: "AGE", Drop: 2},
	}
	if allNamespaces {
		shown = append([]cli.Column{{Title: "NAMESPACE"}}, shown...)
	}
	if wide {
		shown = append(shown, cli.Column{Title: "READY WHEN", Drop: 5}, cli.Column{Title: "MESSAGE", Least: 20, Wrap: true, Drop: 6})
	}
	return shown
}

// stateColors are the colors of the states.
var stateColors = map[batchv1alpha1.PodReadinessGroupPhase]cli.Color{
	batchv1alpha1.GroupReady: cli.Good, batchv1alpha1.GroupPending: cli.Busy, batchv1alpha1.GroupDegraded: cli.Bad,
}

// cells are the row for humans.
func (r *Row) cells(t cli.Terminal, allNamespaces, wide bool, now time.Time) []string {
	size := "?"
	if r.Size > 0 {
		size = cli.Number(int(r.Size))
	}
	cells := []string{
		r.Name, r.LabelPrefix, size, string(r.Source), cli.Number(int(r.Pods)), cli.Number(int(r.Running)), cli.Number(int(r.Ready)),
		t.Paint(stateColors[r.State], string(r.State)), cli.Duration(now.Sub(r.CreateTime.Time)),
	}
	if allNamespaces {
		cells = append([]string{r.Namespace}, cells...)
	}
	if wide {
		cells = append(cells, string(r.ReadyWhen), cli.Clean(r.Message))
	}
	return cells
}
