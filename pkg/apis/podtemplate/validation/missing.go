// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// rejected says what follows if no webhook adds what is missing.
func (m missing) rejected() string {
	return "; " + m.made + " are rejected unless an admission webhook %s"
}

// gap is what a template lacks: as a warning where an admission webhook may add it, and as an error where nothing does.
type gap struct {
	path    *field.Path
	warning string
	err     *field.Error
}

// missing collects gaps. What is made of the template is rejected if they stay.
type missing struct {
	made string
	add  func(gap)
}

// Missing reports, through add, what a Job needs and does not have, and values that this version does not know. The API
// server of the main cluster rejects the Jobs unless an admission webhook completes them, or it knows the values. Claims are
// the volumes that the set adds to its pods.
func Missing(template *batchv1.JobTemplateSpec, claims map[string]struct{}, path *field.Path, add func(path *field.Path, format string,
	args ...any)) {
	m := missing{made: "Jobs", add: func(g gap) { add(g.path, "%s", g.warning) }}
	m.job(template, claims, path)
}

// MissingInPods reports, through add, what a pod needs and does not have, as Missing does for Jobs.
func MissingInPods(template *corev1.PodTemplateSpec, claims map[string]struct{}, path *field.Path, add func(path *field.Path, format string,
	args ...any)) {
	m := missing{made: "pods", add: func(g gap) { add(g.path, "%s", g.warning) }}
	m.pod(&template.Spec, claims, path.Child("spec"))
}

// ValidateComplete refuses what Missing reports, for templates that say all that their Jobs have.
func ValidateComplete(template *batchv1.JobTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	m := missing{made: "Jobs", add: func(g gap) { errs = append(errs, g.err) }}
	m.job(template, nil, path)
	return errs
}

func (m missing) job(template *batchv1.JobTemplateSpec, claims map[string]struct{}, path *field.Path) {
	spec, p := &template.Spec, path.Child("spec")
	if spec.Completions == nil && spec.Parallelism != nil && ptr.Deref(spec.CompletionMode, "") == batchv1.IndexedCompletion {
		n := max(*spec.Parallelism, 1)
		m.required(p.Child("completions"), fmt.Sprintf("must be set, because completionMode is Indexed: set it to %d", n),
			"not set, although completionMode is Indexed, the default, and parallelism is set; Jobs are rejected; set completions to %d, or "+
				"completionMode to NonIndexed", n)
	}
	pod, podPath := &spec.Template.Spec, p.Child("template", "spec")
	m.podFailurePolicy(spec.PodFailurePolicy, pod, p.Child("podFailurePolicy", "rules"))
	m.pod(pod, claims, podPath)
}

func (m missing) pod(pod *corev1.PodSpec, claims map[string]struct{}, podPath *field.Path) {
	if pod.Containers != nil && len(pod.Containers) == 0 {
		m.required(podPath.Child("containers"), "must have a container", "empty"+m.rejected(), "adds a container")
	}
	volumes := maps.Clone(claims)
	if volumes == nil {
		volumes = map[string]struct{}{}
	}
	for i := range pod.Volumes {
		volumes[pod.Volumes[i].Name] = struct{}{}
	}
	devices := map[string]struct{}{}
	for i := range pod.ResourceClaims {
		devices[pod.ResourceClaims[i].Name] = struct{}{}
	}
	for i := range pod.InitContainers {
		m.container(&pod.InitContainers[i], volumes, devices, podPath.Child("initContainers").Index(i))
	}
	for i := range pod.Containers {
		m.container(&pod.Containers[i], volumes, devices, podPath.Child("containers").Index(i))
	}
}

// required reports a field that is not set.
func (m missing) required(path *field.Path, must, warning string, args ...any) {
	m.add(gap{path: path, warning: fmt.Sprintf(warning, args...), err: field.Required(path, must)})
}

func (m missing) container(container *corev1.Container, volumes, devices map[string]struct{}, path *field.Path) {
	switch image := container.Image; {
	case image == "":
		m.required(path.Child("image"), "must be set", "not set"+m.rejected(), "adds it")
	case image != strings.TrimSpace(image):
		m.add(gap{
			path: path.Child("image"), warning: fmt.Sprintf("%q begins or ends with a space; its pods are rejected", image),
			err: field.Invalid(path.Child("image"), image, "must not begin or end with a space"),
		})
	}
	m.unknown(path.Child("imagePullPolicy"), string(container.ImagePullPolicy), "Always", "IfNotPresent", "Never")
	for i := range container.VolumeMounts {
		if name := container.VolumeMounts[i].Name; name != "" {
			m.reference(path.Child("volumeMounts").Index(i).Child("name"), name, volumes, "volume")
		}
	}
	for i := range container.VolumeDevices {
		if name := container.VolumeDevices[i].Name; name != "" {
			m.reference(path.Child("volumeDevices").Index(i).Child("name"), name, volumes, "volume")
		}
	}
	for i := range container.Resources.Claims {
		if name := container.Resources.Claims[i].Name; name != "" {
			m.reference(path.Child("resources", "claims").Index(i).Child("name"), name, devices, "resource claim")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(container.Resources.Requests)) {
		request := container.Resources.Requests[name]
		if _, limited := container.Resources.Limits[name]; !limited && whole(name) {
			m.required(path.Child("resources", "limits").Key(string(name)),
				fmt.Sprintf("must be equal to the request, %s, because %s cannot be overcommitted", request.String(), name),
				"not set, although there is a request"+m.rejected()+"; set it to %s", "adds it", request.String())
		}
	}
}

// reference reports a name that the pod does not have.
func (m missing) reference(path *field.Path, name string, known map[string]struct{}, what string) {
	if _, found := known[name]; !found {
		m.add(gap{
			path: path, warning: fmt.Sprintf("the pod has no %s %q"+m.rejected(), what, name, "adds it"),
			err: field.Invalid(path, name, fmt.Sprintf("must be the name of a %s of the pod: add it, or correct the name", what)),
		})
	}
}

func (m missing) podFailurePolicy(policy *batchv1.PodFailurePolicy, pod *corev1.PodSpec, path *field.Path) {
	if policy == nil {
		return
	}
	names := map[string]struct{}{}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			names[containers[i].Name] = struct{}{}
		}
	}
	for i := range policy.Rules {
		rule, p := &policy.Rules[i], path.Index(i)
		m.unknown(p.Child("action"), string(rule.Action), "FailJob", "FailIndex", "Ignore", "Count")
		if codes := rule.OnExitCodes; codes != nil {
			m.unknown(p.Child("onExitCodes", "operator"), string(codes.Operator), "In", "NotIn")
			if codes.ContainerName != nil {
				m.reference(p.Child("onExitCodes", "containerName"), *codes.ContainerName, names, "container")
			}
		}
	}
}

// unknown reports a value that only a newer API server could know.
func (m missing) unknown(path *field.Path, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		m.add(gap{
			path: path, warning: fmt.Sprintf("%q is unknown, and %s with it are rejected; known values are %s", value, m.made,
				strings.Join(known, ", ")),
			err: field.NotSupported(path, value, known),
		})
	}
}
