// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Scheduling are the objects by which the scheduler would know the groups of pods of spec.scheduling. They belong to the API of Kubernetes:
// whether the controller is started for another scheduler is not published, and neither is whether its feature gate is on.
type Scheduling struct {
	// API is the version of scheduling.k8s.io that the controller would use; absent if the cluster serves none, or it is not known.
	API string `json:"api,omitempty"`
	// Workload is the name of the object that describes the groups.
	Workload string `json:"workload"`
	// PodGroups are the groups, one object each.
	PodGroups []SchedulingGroup `json:"podGroups"`
	// Message says what keeps them from being created now. It is absent if nothing is known to.
	Message string `json:"message,omitempty"`
}

// SchedulingGroup is a group of pods.
type SchedulingGroup struct {
	// Name is the name of the PodGroup.
	Name string `json:"name"`
	// ReplicatedJobs are the replicatedJobs whose pods are in the group. Job is the name of the Job whose pods are alone
	// in it; absent if all Jobs of them are.
	ReplicatedJobs []string `json:"replicatedJobs"`
	Job            string   `json:"job,omitempty"`
	// Pods is how many there are at a time.
	Pods int64 `json:"pods"`
	// MinCount is how many of them must fit at the same time; absent if pods are scheduled one by one.
	MinCount *int64 `json:"minCount,omitempty"`
}

// schedulingGate is the feature gate of spec.scheduling.
const schedulingGate = "JobSetWorkloadAwareSchedulingAPI"

// previewScheduling says which objects the groups of pods of a set result in, if it has any.
func (p *previewer) previewScheduling(ctx context.Context) {
	if !plan.ManagedHere(p.js) || !jobsetgang.AskedFor(p.js) {
		return
	}
	set, asked := helper.PodGroups(p.js)
	out := &Scheduling{Workload: set.WorkloadName()}
	for _, group := range set.Groups() {
		g := SchedulingGroup{Name: group.Name, ReplicatedJobs: set.Entries[group.Entry].Targets, Pods: group.Pods}
		if group.Job >= 0 {
			g.Job = helper.JobName(p.js.Name, g.ReplicatedJobs[0], group.Job)
		}
		if gang := asked[group.Entry].Policy.Gang; gang != nil {
			g.MinCount = &group.Pods
			if gang.MinCount != nil {
				g.MinCount = ptr.To(int64(*gang.MinCount))
			}
		}
		out.PodGroups = append(out.PodGroups, g)
	}
	if len(out.PodGroups) == 0 {
		return // a set without pods
	}
	var err error
	switch out.API, err = p.groupsAPI(ctx); {
	case ptr.Deref(p.js.Spec.Suspend, false):
		out.Message = "the Workload and the PodGroups are created when the set is resumed"
	case err != nil:
		out.Message = "whether the cluster serves Workloads and PodGroups of scheduling.k8s.io is not known: " + cli.Clean(err.Error())
	case out.API == "":
		out.Message = "the cluster serves no Workloads and PodGroups of scheduling.k8s.io, so that the Jobs wait for them, unless the feature " +
			"gate " + schedulingGate +
			" of the controller is off, or its --gang-scheduling-provider names another scheduler"
	}
	p.out.Scheduling = out
	if out.Message != "" {
		p.out.Notes = append(p.out.Notes, "spec.scheduling: "+out.Message)
	}
}

// groupsAPI returns the newest version with Workloads and PodGroups that the cluster serves; empty if there is none.
func (p *previewer) groupsAPI(ctx context.Context) (string, error) {
	for _, api := range jobsetgang.APIs {
		var list metav1.APIResourceList
		switch err := p.document(ctx, path.Join("/apis", api.GroupVersion().String()), &list); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return "", err
		}
		names := sets.New[string]()
		for i := range list.APIResources {
			names.Insert(list.APIResources[i].Name)
		}
		if names.HasAll("workloads", "podgroups") {
			return api.GroupVersion().String(), nil
		}
	}
	return "", nil
}

// lines are the groups of pods.
func (out *Scheduling) lines(t cli.Terminal) []string {
	if out == nil {
		return nil
	}
	var rows [][]string
	for i := range out.PodGroups {
		g := &out.PodGroups[i]
		of, together := strings.Join(g.ReplicatedJobs, ", "), "one by one"
		if g.Job != "" {
			of = g.Job
		}
		if g.MinCount != nil {
			together = cli.Number(int(*g.MinCount))
		}
		rows = append(rows, []string{g.Name, of, cli.Number(int(g.Pods)), together})
	}
	columns := []cli.Column{{Title: "PODGROUP"}, {Title: "PODS OF", Drop: 1}, {Title: "COUNT", Drop: 2}, {Title: "AT ONCE"}}
	lines := append([]string{""}, indented(columns, rows, t)...)
	text := "with the Workload " + out.Workload
	if out.API != "" {
		text += ", of " + out.API
	}
	text += ", if the feature gate " + schedulingGate + " of the controller is on; with --gang-scheduling-provider=volcano or " +
		"coscheduling, PodGroups of that scheduler with " +
		"these names, and no Workload"
	for _, line := range wrap("  ", text, t) {
		lines = append(lines, t.Paint(cli.Quiet, line))
	}
	return lines
}
