// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func (a *applier) patchJobs(ctx context.Context, patches []plan.JobPatch) error {
	err := a.jobs.Each(ctx, a.js, len(patches), func(ctx context.Context, i int) error { return a.patchJob(ctx, patches[i]) })
	if err == nil && len(patches) > 0 {
		klog.FromContext(ctx).V(4).Info("Changed Jobs", "jobs", len(patches))
	}
	return err
}

func (a *applier) patchJob(ctx context.Context, patch plan.JobPatch) error {
	if patch.ClearStartTime {
		version, err := a.sendPatch(ctx, patch.JobRef, patch.ResourceVersion, []children.Operation{children.Remove("/status/startTime")},
			"status")
		if err != nil || version == "" {
			return err
		}
		patch.ResourceVersion = version
	}
	version, err := a.sendPatch(ctx, patch.JobRef, patch.ResourceVersion, operations(patch))
	if version != "" && patch.Suspend != nil && !*patch.Suspend {
		a.note(func(*plan.Results) { a.resumed++ })
	}
	if patch.Directives != nil && len(patch.Directives.Resources) > 0 && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) {
		a.note(func(r *plan.Results) {
			r.RefusedResources = append(r.RefusedResources, hostplan.BlockedChild{What: patch.Name, Refusal: plan.Refusal{Message: err.Error()}})
		})
	}
	return err
}

// sendPatch returns the new resource version of the Job; none if the Job is gone.
func (a *applier) sendPatch(ctx context.Context, job plan.JobRef, version string, steps []children.Operation,
	subresources ...string) (string, error) {
	version, err := a.jobs.Patch(ctx, a.js, job, version, steps, subresources...)
	if err == nil && version != "" {
		a.accepted(1)
	}
	return version, err
}

// operations turns a patch of the plan into steps.
func operations(patch plan.JobPatch) (steps []children.Operation) {
	if patch.Suspend != nil {
		steps = append(steps, children.Set("/spec/suspend", *patch.Suspend))
	}
	steps = append(steps, annotate(patch)...)
	if d := patch.Directives; d != nil {
		steps = append(steps, children.ChangeKeys("/spec/template/metadata/labels", d.OldLabels, d.Labels)...)
		steps = append(steps, children.ChangeKeys("/spec/template/metadata/annotations", d.OldAnnotations, d.Annotations)...)
		steps = append(steps,
			children.Set("/spec/template/spec/nodeSelector", d.NodeSelector),
			children.Set("/spec/template/spec/tolerations", d.Tolerations),
			children.Set("/spec/template/spec/schedulingGates", d.SchedulingGates),
		)
		for _, c := range d.Resources {
			list := "containers"
			if c.Init {
				list = "initContainers"
			}
			steps = append(steps, children.Set(fmt.Sprintf("/spec/template/spec/%s/%d/resources", list, c.Index), c.Resources))
		}
	}
	if s := patch.Size; s != nil {
		steps = append(steps, children.Set("/spec/parallelism", s.Parallelism), children.Set("/spec/completions", s.Completions))
	}
	return steps
}

// annotate sets annotations one by one, so that others stay.
func annotate(patch plan.JobPatch) []children.Operation {
	const path = "/metadata/annotations"
	if patch.Unannotated && len(patch.Annotations) > 0 {
		return []children.Operation{children.Set(path, patch.Annotations)}
	}
	return children.SetKeys(path, patch.Annotations)
}
