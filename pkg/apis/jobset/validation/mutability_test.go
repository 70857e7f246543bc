// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

func setGates(names ...string) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		pod := &js.Spec.ReplicatedJobs[1].Template.Spec.Template
		pod.Spec.SchedulingGates = nil
		for _, name := range names {
			pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
		}
	}
}

func onJob(change func(*jobset.ReplicatedJob)) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) { change(&js.Spec.ReplicatedJobs[1]) }
}

func onPod(change func(*corev1.PodTemplateSpec)) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) { change(&js.Spec.ReplicatedJobs[1].Template.Spec.Template) }
}

func onContainer(change func(*corev1.Container)) func(*jobset.JobSet) {
	return onPod(func(p *corev1.PodTemplateSpec) { change(&p.Spec.Containers[0]) })
}

func onInitContainer(change func(*corev1.Container)) func(*jobset.JobSet) {
	return onPod(func(p *corev1.PodTemplateSpec) { change(&p.Spec.InitContainers[1]) })
}

// prepared has two init containers, and in its container a claim on a device.
func prepared(js *jobset.JobSet) {
	onPod(func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers = []corev1.Container{{Name: "fetch", Image: "i"}, {Name: "proxy", Image: "i"}}
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}, {Name: "nic"}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	})(js)
}

func cpu(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

// mutability is the matrix of docs/reference/jobset.md#mutability: a change, and when it is allowed. Every change works in both
// directions: the test makes it, and takes it back.
var mutability = map[string]struct {
	change func(*jobset.JobSet)
	rule   string // always, suspended, resources, elastic, never
	where  string // what the refusal names
}{
	"activeDeadlineSeconds":        {change: func(js *jobset.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To[int64](5) }, rule: "always"},
	"ttlSecondsAfterFinished":      {change: func(js *jobset.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](5) }, rule: "always"},
	"coordinator":                  {change: func(js *jobset.JobSet) { js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "workers"} }, rule: "always"},
	"metadata.labels":              {change: func(js *jobset.JobSet) { js.Labels = map[string]string{"a": "b"} }, rule: "always"},
	"metadata.annotations":         {change: func(js *jobset.JobSet) { js.Annotations = map[string]string{"a": "b"} }, rule: "always"},
	"metadata.finalizers":          {change: func(js *jobset.JobSet) { js.Finalizers = []string{"acme.io/hold"} }, rule: "always"},
	"pod template labels":          {change: onPod(func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{"a": "b"} }), rule: "suspended", where: "template.spec.template.metadata.labels"},
	"pod template annotations":     {change: onPod(func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"a": "b"} }), rule: "suspended", where: "template.spec.template.metadata.annotations"},
	"pod template nodeSelector":    {change: onPod(func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"a": "b"} }), rule: "suspended", where: "template.spec.template.spec.nodeSelector"},
	"pod template tolerations":     {change: onPod(func(p *corev1.PodTemplateSpec) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }), rule: "suspended", where: "template.spec.template.spec.tolerations"},
	"pod template schedulingGates": {change: setGates("a"), rule: "suspended", where: "template.spec.template.spec.schedulingGates"},
	"parallelism and completions":  {change: resize(ptr.To[int32](8), ptr.To[int32](8)), rule: "elastic", where: "template.spec.parallelism"},
	"container limits":             {change: onContainer(func(c *corev1.Container) { c.Resources.Limits = cpu("1") }), rule: "resources", where: "template.spec.template.spec.containers[0].resources.limits"},
	"container requests":           {change: onContainer(func(c *corev1.Container) { c.Resources.Requests = cpu("1") }), rule: "resources", where: "template.spec.template.spec.containers[0].resources.requests"},
	"init container limits":        {change: onInitContainer(func(c *corev1.Container) { c.Resources.Limits = cpu("1") }), rule: "resources", where: "template.spec.template.spec.initContainers[1].resources.limits"},
	"init container requests":      {change: onInitContainer(func(c *corev1.Container) { c.Resources.Requests = cpu("1") }), rule: "resources", where: "template.spec.template.spec.initContainers[1].resources.requests"},
	"container claims":             {change: onContainer(func(c *corev1.Container) { c.Resources.Claims[0].Name = "nic" }), rule: "never", where: "template.spec.template.spec.containers[0].resources.claims"},
	"container image":              {change: onContainer(func(c *corev1.Container) { c.Image = "other" }), rule: "never", where: "template.spec.template.spec.containers[0].image"},
	"container name":               {change: onContainer(func(c *corev1.Container) { c.Name = "other" }), rule: "never", where: "template.spec.template.spec.containers[0].name"},
	"container resizePolicy": {change: onContainer(func(c *corev1.Container) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.NotRequired}}
	}), rule: "never", where: "template.spec.template.spec.containers[0].resizePolicy"},
	"container image and limits": {change: onContainer(func(c *corev1.Container) { c.Image, c.Resources.Limits = "other", cpu("1") }), rule: "never", where: "template.spec.template.spec.containers[0].image"},
	"init container image":       {change: onInitContainer(func(c *corev1.Container) { c.Image = "other" }), rule: "never", where: "template.spec.template.spec.initContainers[1].image"},
	"order of init containers, which differ in limits": {change: onPod(func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers[0].Resources.Limits = cpu("1")
		slices.Reverse(p.Spec.InitContainers)
	}), rule: "never", where: "template.spec.template.spec.initContainers[0].name"},
	"number of containers": {change: onPod(func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "extra", Resources: corev1.ResourceRequirements{Limits: cpu("1")}})
	}), rule: "never", where: "template.spec.template.spec.containers"},
	"number of init containers": {change: onPod(func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "extra"})
	}), rule: "never", where: "template.spec.template.spec.initContainers"},
	"resources of the pod as a whole": {change: onPod(func(p *corev1.PodTemplateSpec) {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: cpu("1")}
	}), rule: "never", where: "template.spec.template.spec.resources"},
	"pod hostname":             {change: onPod(func(p *corev1.PodTemplateSpec) { p.Spec.Hostname = "other" }), rule: "never", where: "template.spec.template.spec.hostname"},
	"pod subdomain":            {change: onPod(func(p *corev1.PodTemplateSpec) { p.Spec.Subdomain = "other" }), rule: "never", where: "template.spec.template.spec.subdomain"},
	"pod template finalizers":  {change: onPod(func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"acme.io/hold"} }), rule: "never", where: "template.spec.template.metadata.finalizers"},
	"Job template labels":      {change: onJob(func(rj *jobset.ReplicatedJob) { rj.Template.Labels = map[string]string{"a": "b"} }), rule: "never", where: "template.metadata"},
	"Job template annotations": {change: onJob(func(rj *jobset.ReplicatedJob) { rj.Template.Annotations = map[string]string{"a": "b"} }), rule: "never", where: "template.metadata"},
	"Job backoffLimit":         {change: onJob(func(rj *jobset.ReplicatedJob) { rj.Template.Spec.BackoffLimit = ptr.To[int32](2) }), rule: "never", where: "template.spec.backoffLimit"},
	"Job completionMode":       {change: onJob(func(rj *jobset.ReplicatedJob) { rj.Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion) }), rule: "never", where: "template.spec.completionMode"},
	"replicas":                 {change: onJob(func(rj *jobset.ReplicatedJob) { rj.Replicas = ptr.To[int32](3) }), rule: "never", where: "replicas"},
	"groupName":                {change: onJob(func(rj *jobset.ReplicatedJob) { rj.GroupName = ptr.To("other") }), rule: "never", where: "groupName"},
	"name":                     {change: onJob(func(rj *jobset.ReplicatedJob) { rj.Name = "other" }), rule: "never", where: "name"},
	"dependsOn, set and taken back": {change: onJob(func(rj *jobset.ReplicatedJob) {
		rj.DependsOn = []jobset.DependsOn{{Name: "launcher", Status: jobset.DependencyReady}}
	}), rule: "never", where: "dependsOn"},
	"number of replicatedJobs": {change: func(js *jobset.JobSet) {
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *js.Spec.ReplicatedJobs[1].DeepCopy())
		js.Spec.ReplicatedJobs[2].Name = "third"
	}, rule: "never", where: "number"},
	"order of replicatedJobs": {change: func(js *jobset.JobSet) {
		jobs := js.Spec.ReplicatedJobs
		js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{jobs[1], jobs[0]}
	}, rule: "never", where: "order"},
}

// suspensions are the states before and after a write that changes something else too.
var suspensions = []struct {
	name       string
	prev, next *bool
	suspended  bool
}{
	{name: "running", suspended: false},
	{name: "running, said so", prev: ptr.To(false), next: ptr.To(false), suspended: false},
	{name: "suspended", prev: ptr.To(true), next: ptr.To(true), suspended: true},
	{name: "suspending in the same write", next: ptr.To(true), suspended: true},
	{name: "resuming in the same write", prev: ptr.To(true), next: ptr.To(false), suspended: true},
	{name: "resuming by removal", prev: ptr.To(true), suspended: true},
}

func TestMutabilityMatrix(t *testing.T) {
	options := map[string]gates.Gates{
		"all gates off":            {},
		"ElasticJobSet on":         {ElasticJobSet: true},
		"mutable pod resources on": {MutablePodResourcesForSuspendedJobSets: true},
		"both gates on":            {ElasticJobSet: true, MutablePodResourcesForSuspendedJobSets: true},
	}
	for name, cell := range mutability {
		for _, s := range suspensions {
			for gates, opts := range options {
				for _, back := range []bool{false, true} {
					t.Run(fmt.Sprintf("1.5 %s, %s, %s, taken back %v", name, s.name, gates, back), func(t *testing.T) {
						prev, next := train(prepared), train(prepared, cell.change)
						if back {
							prev, next = next, prev
						}
						prev.Spec.Suspend, next.Spec.Suspend = s.prev, s.next
						errs := validation.ValidateJobSetUpdate(next, prev, opts)
						if allowed(cell.rule, s.suspended, opts) {
							if len(errs) > 0 {
								t.Errorf("refused: %v", errs)
							}
							return
						}
						where, advice := immutableAt(cell.where), immutableAdvice(cell.rule, opts)
						if !slices.ContainsFunc(errs, func(err *field.Error) bool {
							return err.Type == invalid && strings.HasPrefix(err.Field, where) && strings.HasSuffix(err.Detail, advice)
						}) {
							t.Errorf("got %v, want %q at %s", errs, advice, where)
						}
					})
				}
			}
		}
	}
}

func allowed(rule string, suspended bool, opts gates.Gates) bool {
	switch rule {
	case "always":
		return true
	case "suspended":
		return suspended
	case "resources":
		return suspended && opts.MutablePodResourcesForSuspendedJobSets
	case "elastic":
		return opts.ElasticJobSet
	}
	return false
}

// immutableAt returns the beginning of the path of the refused field.
func immutableAt(where string) string {
	switch where {
	case "number":
		return "spec.replicatedJobs"
	case "order":
		return "spec.replicatedJobs[0].name"
	}
	return "spec.replicatedJobs[1]." + where
}

func immutableAdvice(rule string, opts gates.Gates) string {
	switch {
	case rule == "elastic":
		return "field is immutable while the feature gate ElasticJobSet of the API server is off; delete and recreate the JobSet"
	case rule == "suspended" || rule == "resources" && opts.MutablePodResourcesForSuspendedJobSets:
		return "field is immutable unless the JobSet is suspended: set spec.suspend to true"
	}
	return "field is immutable: " + immutable
}

func TestSuspendMayAlwaysChange(t *testing.T) {
	values := []*bool{nil, ptr.To(false), ptr.To(true)}
	for _, prev := range values {
		for _, next := range values {
			for _, state := range []string{"", "Completed", "Failed"} {
				t.Run(fmt.Sprintf("1.5 suspend from %v to %v, finished %q", ptr.Deref(prev, false), ptr.Deref(next, false), state), func(t *testing.T) {
					a, b := train(finishedAs(state)), train(finishedAs(state))
					a.Spec.Suspend, b.Spec.Suspend = prev, next
					if errs := validation.ValidateJobSetUpdate(b, a, gates.Gates{}); len(errs) > 0 {
						t.Error(errs.ToAggregate())
					}
				})
			}
		}
	}
}
