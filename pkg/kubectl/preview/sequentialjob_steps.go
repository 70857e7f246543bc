// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// askStep asks about the child of a step, which the controller makes of it.
func (p *sequencePreviewer) askStep(ctx context.Context, step helper.Step, taken bool) (Step, error) {
	out := Step{Name: step.Name, Index: step.Index, Kind: string(step.Kind()), ChildName: helper.ChildName(p.sj.Name, step.Index)}
	if helper.ManagedElsewhere(p.sj) {
		return out, nil
	}
	job, js := plan.NewChild(p.sj, step, 1)
	if js != nil {
		out.Queue = js.Labels[helper.QueueKey]
		return out, p.askSet(ctx, &out, js)
	}
	out.Queue, out.NameTaken, out.Pods = job.Labels[helper.QueueKey], taken, int(snapshot.JobSize(job))
	where := stepField(step, len(p.sj.Spec.Steps) > 0)
	asked, err := p.Session.askJob(ctx, job, taken, out.Pods > 0, where)
	if err != nil {
		return out, err
	}
	out.Job, out.Pod = asked.job, asked.pod
	if out.Pod != nil {
		if err := p.askReferencesOf(ctx, p.out.Namespace, asked.first, where, out.Pod); err != nil {
			return out, err
		}
	}
	u := usage{objects: corev1.ResourceList{}}
	u.count(1, "count/jobs.batch")
	if asked.first != nil && out.Pods > 0 {
		u.pods = append(u.pods, podUsage{&asked.first.Spec, out.Pods})
	}
	out.Quota = countQuota(p.alone().quotas[p.out.Namespace], u)
	return out, nil
}

// askSet previews the JobSet of a step as a new one.
func (p *sequencePreviewer) askSet(ctx context.Context, out *Step, js *jobsetv1alpha2.JobSet) error {
	detach(js)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(js)
	if err != nil {
		return fmt.Errorf("encoding the JobSet: %w", err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(cli.JobSet.GroupVersion.WithKind(cli.JobSet.Title))
	unstructured.RemoveNestedField(object.Object, "status")
	child := newPreviewer(p.alone(), object)
	if err := child.previewing().runNew(ctx, object); err != nil {
		return err
	}
	out.JobSet, out.Pods = &child.out, child.out.Pods
	return nil
}

// stepField is the locator of the Job of a step.
func stepField(step helper.Step, inSteps bool) locator {
	if step.Job != nil {
		path := fmt.Sprintf("spec.steps[%d].job", step.Index)
		return func(field string) string {
			switch field {
			case "", "metadata.name", "metadata.generateName":
				return path
			}
			return path + "." + field
		}
	}
	return containerField(step, inSteps)
}

// containerField is the locator of the Job of a step that is a container: what is not of the container is of the template.
func containerField(step helper.Step, inSteps bool) locator {
	const template, container = "spec.template", "spec.template.spec.containers[0]"
	path := fmt.Sprintf("spec.containers[%d]", step.Index)
	if inSteps {
		path = fmt.Sprintf("spec.steps[%d].container", step.Index)
	}
	return func(field string) string {
		switch {
		case strings.HasPrefix(field, container):
			return path + strings.TrimPrefix(field, container)
		case strings.HasPrefix(field, template), field == "spec.backoffLimit":
			return field
		}
		return path
	}
}
