// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// manifest are the objects of a manifest that are not previewed. They are created together with the previewed objects, which may need them.
type manifest []*unstructured.Unstructured

// considered are the kinds that a preview takes into account.
var considered = []string{
	"Namespace", "ServiceAccount", "PriorityClass", "RuntimeClass", "ConfigMap", "Secret", "PersistentVolumeClaim", "Service", "ResourceQuota",
}

// find returns the object of the manifest; nil if there is none. The namespace of objects without one is "".
func (m manifest) find(kind, namespace, name string) *unstructured.Unstructured {
	at := slices.IndexFunc(m, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name && (namespace == "" || o.GetNamespace() == namespace)
	})
	if at < 0 {
		return nil
	}
	return m[at]
}

func (m manifest) has(kind, namespace, name string) bool { return m.find(kind, namespace, name) != nil }

// service returns the Service of the manifest; nil if there is none.
func (m manifest) service(namespace, name string) *corev1.Service {
	object := m.find("Service", namespace, name)
	service := &corev1.Service{}
	if object == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, service) != nil {
		return nil
	}
	return service
}

// quotas returns the quotas of the namespace with those of the manifest, which replace the ones of the same name.
func (m manifest) quotas(namespace string, live []corev1.ResourceQuota) []corev1.ResourceQuota {
	all := slices.Clone(live)
	for _, object := range m {
		quota := corev1.ResourceQuota{}
		if object.GetKind() != "ResourceQuota" || object.GetNamespace() != namespace ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &quota) != nil {
			continue
		}
		quota.Status.Hard = quota.Spec.Hard
		at := slices.IndexFunc(all, func(q corev1.ResourceQuota) bool { return q.Name == quota.Name })
		if at < 0 {
			all = append(all, quota)
			continue
		}
		quota.Status.Used = all[at].Status.Used
		all[at] = quota
	}
	return all
}

// standIn replaces what the pod lacks and the manifest creates, so that the question is about all the rest. It returns false if the
// problems are about something else.
func (m manifest) standIn(pod *corev1.Pod, problems []string) bool {
	lacks := func(pattern *regexp.Regexp, kind, namespace, name string) bool {
		return name != "" && m.has(kind, namespace, name) && slices.ContainsFunc(problems, func(text string) bool {
			found := pattern.FindStringSubmatch(text)
			return found != nil && found[1] == name
		})
	}
	spec := &pod.Spec
	switch {
	case lacks(noServiceAccount, "ServiceAccount", pod.Namespace, spec.ServiceAccountName):
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = "default", "default"
	case lacks(noPriorityClass, "PriorityClass", "", spec.PriorityClassName):
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = "", nil, nil
	case lacks(noRuntimeClass, "RuntimeClass", "", ptr.Deref(spec.RuntimeClassName, "")):
		spec.RuntimeClassName, spec.Overhead = nil, nil
	default:
		return false
	}
	return true
}

// summary says which objects of the manifest the preview has taken into account, and which it has not.
func (m manifest) summary() []string {
	counts := map[string]int{}
	for _, object := range m {
		counts[object.GetKind()]++
	}
	list := func(included bool) (parts []string) {
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
			if slices.Contains(considered, kind) == included {
				parts = append(parts, cli.Count(counts[kind], kind))
			}
		}
		return parts
	}
	var lines []string
	if known := list(true); len(known) > 0 {
		lines = append(lines, "taken into account from the manifest: "+strings.Join(known, ", "))
	}
	if unknown := list(false); len(unknown) > 0 {
		lines = append(lines, "not previewed: "+strings.Join(unknown, ", "))
	}
	return lines
}

// limitRangeNote is about limit ranges of the manifest for the namespace; "" if there is none.
func (m manifest) limitRangeNote(namespace string) string {
	for _, object := range m {
		if object.GetKind() == "LimitRange" && object.GetNamespace() == namespace {
			return fmt.Sprintf("the LimitRange %s of the manifest is not applied to the pods: create it first to preview its effect",
				object.GetName())
		}
	}
	return ""
}
