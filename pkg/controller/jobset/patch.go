// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// operation is one step of a JSON patch. Unlike a merge patch it can replace a whole map, which is how directives that
// the set no longer has get lost.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func set(path string, value any) operation { return operation{Op: "add", Path: path, Value: value} }

func (a *applier) patchJobs(ctx context.Context, patches []plan.JobPatch) error {
	order := rand.Perm(len(patches))
	err := a.slowStart.Do(ctx, a.key, len(patches), func(ctx context.Context, i int) error {
		return a.patchJob(ctx, patches[order[i]])
	})
	if err == nil && len(patches) > 0 {
		klog.FromContext(ctx).V(2).Info("Changed Jobs", "jobs", len(patches))
	}
	return err
}

func (a *applier) patchJob(ctx context.Context, patch plan.JobPatch) error {
	if patch.ClearStartTime {
		version, err := a.sendPatch(ctx, patch.Name, "status", []operation{
			set("/metadata/resourceVersion", patch.ResourceVersion),
			{Op: "remove", Path: "/status/startTime"},
		})
		if err != nil || version == "" {
			return err
		}
		patch.ResourceVersion = version
	}
	_, err := a.sendPatch(ctx, patch.Name, "", operations(patch))
	if patch.Directives != nil && len(patch.Directives.Resources) > 0 && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) {
		a.reportFailure(a.js, resourcesRefused(patch.Name, err))
	}
	return err
}

// restoreLabels gives a Job the labels back with which it was created. Without that of the set no cache shows it.
func (a *applier) restoreLabels(ctx context.Context, job *batchv1.Job) error {
	lost := plan.LostLabels(job)
	steps := []operation{set("/metadata/resourceVersion", job.ResourceVersion)}
	if job.Labels == nil {
		steps = append(steps, set("/metadata/labels", lost))
	}
	for _, key := range slices.Sorted(maps.Keys(lost)) {
		steps = append(steps, set("/metadata/labels/"+pointerEscapes.Replace(key), lost[key]))
	}
	version, err := a.sendPatch(ctx, job.Name, "", steps)
	switch {
	case err != nil:
		return err
	case version == "":
		a.count(func() { a.freed++ }) // no cache has shown the Job, so none will show that it is gone
	default:
		a.report(a.js, labelsRestored(job.Name))
	}
	return nil
}

// sendPatch returns the new resource version of the Job; none if the Job is gone.
func (a *applier) sendPatch(ctx context.Context, name, subresource string, operations []operation) (string, error) {
	body, err := json.Marshal(operations)
	if err != nil {
		return "", fmt.Errorf("patching job %s/%s: %w", a.js.Namespace, name, err)
	}
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	job, err := a.Kube.BatchV1().Jobs(a.js.Namespace).Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("patching job %s/%s: %w", a.js.Namespace, name, err)
	}
	a.accepted.Add(1)
	a.writes.Wrote(a.key, resourceJobs, job.ResourceVersion)
	return job.ResourceVersion, nil
}

// operations turns a patch of the plan into steps. The API refuses them for any other version of the Job.
func operations(patch plan.JobPatch) []operation {
	steps := []operation{set("/metadata/resourceVersion", patch.ResourceVersion)}
	if patch.Suspend != nil {
		steps = append(steps, set("/spec/suspend", *patch.Suspend))
	}
	steps = append(steps, annotate(patch)...)
	if d := patch.Directives; d != nil {
		steps = append(steps, changeKeys("/spec/template/metadata/labels", d.OldLabels, d.Labels)...)
		steps = append(steps, changeKeys("/spec/template/metadata/annotations", d.OldAnnotations, d.Annotations)...)
		steps = append(steps,
			set("/spec/template/spec/nodeSelector", d.NodeSelector),
			set("/spec/template/spec/tolerations", d.Tolerations),
			set("/spec/template/spec/schedulingGates", d.SchedulingGates),
		)
		for _, c := range d.Resources {
			list := "containers"
			if c.Init {
				list = "initContainers"
			}
			steps = append(steps, set(fmt.Sprintf("/spec/template/spec/%s/%d/resources", list, c.Index), c.Resources))
		}
	}
	if s := patch.Size; s != nil {
		steps = append(steps, set("/spec/parallelism", s.Parallelism), set("/spec/completions", s.Completions))
	}
	return steps
}

// annotate sets annotations one by one, so that others stay.
func annotate(patch plan.JobPatch) []operation {
	var steps []operation
	if patch.Unannotated && len(patch.Annotations) > 0 {
		return append(steps, set("/metadata/annotations", patch.Annotations))
	}
	for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
		steps = append(steps, set("/metadata/annotations/"+pointerEscapes.Replace(key), patch.Annotations[key]))
	}
	return steps
}

// changeKeys turns an old map into another one key by key, because the Job has keys that nobody observed, and that must
// stay. A key is set before it is removed: if the Job has lost it meanwhile, the answer is to be a conflict, and not that
// the patch makes no sense.
func changeKeys(path string, old, next map[string]string) []operation {
	if old == nil {
		return []operation{set(path, next)}
	}
	var steps []operation
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if value, found := old[key]; !found || value != next[key] {
			steps = append(steps, set(path+"/"+pointerEscapes.Replace(key), next[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, stays := next[key]; !stays {
			at := path + "/" + pointerEscapes.Replace(key)
			steps = append(steps, set(at, ""), operation{Op: "remove", Path: at})
		}
	}
	return steps
}

// pointerEscapes makes a key a part of a JSON pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
