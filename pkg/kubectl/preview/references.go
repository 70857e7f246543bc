// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// maxReferences is how many objects that pods refer to are looked for.
const maxReferences = 100

// reference is an object that the pods of a replicatedJob need to start.
type reference struct {
	kind, name, field string
}

// referenced are the resources of the kinds that pods refer to.
var referenced = map[string]schema.GroupVersionResource{
	"ConfigMap":             corev1.SchemeGroupVersion.WithResource("configmaps"),
	"Secret":                corev1.SchemeGroupVersion.WithResource("secrets"),
	"PersistentVolumeClaim": corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
}

// askReferences warns of objects that the pods need and that neither the cluster nor the manifest has. The pods are created without
// them, and wait. What the user may not read is left out.
func (p *previewer) askReferences(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	missing := make([][]string, len(p.pods))
	left := maxReferences
	for i, pod := range p.pods {
		if pod == nil || p.out.ReplicatedJobs[i].Pod == nil {
			continue
		}
		found := references(&pod.Spec)
		found = slices.DeleteFunc(found, func(r reference) bool {
			return p.manifest.has(r.kind, p.out.Namespace, r.name) ||
				slices.ContainsFunc(p.children.Claims, func(c *corev1.PersistentVolumeClaim) bool {
					return r.kind == "PersistentVolumeClaim" && c.Name == r.name
				})
		})
		found = found[:min(left, len(found))]
		left -= len(found)
		missing[i] = make([]string, len(found))
		for k, r := range found {
			group.Go(func() (err error) {
				missing[i][k], err = p.askReference(ctx, p.out.Namespace, r, podField(i))
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range missing {
		for _, text := range missing[i] {
			if text != "" {
				p.out.ReplicatedJobs[i].Pod.Warnings = append(p.out.ReplicatedJobs[i].Pod.Warnings, text)
			}
		}
	}
	return nil
}

// askReference returns a warning about an object that does not exist, or "".
func (s *Session) askReference(ctx context.Context, namespace string, r reference, where locator) (string, error) {
	exists, err := s.exists(ctx, referenced[r.kind], namespace, r.name)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("looking for the %s %s: %w", r.kind, r.name, err)
	case exists:
		return "", nil
	}
	return fmt.Sprintf("%s: there is no %s %q; the pods wait for it", where(r.field), r.kind, r.name), nil
}

// references returns what the pod cannot start without, each object once.
func references(pod *corev1.PodSpec) []reference {
	var found []reference
	add := func(kind, name, field string, optional *bool) {
		known := slices.ContainsFunc(found, func(r reference) bool { return r.kind == kind && r.name == name })
		if name != "" && !ptr.Deref(optional, false) && !known {
			found = append(found, reference{kind, name, field})
		}
	}
	for i := range pod.Volumes {
		volume, path := &pod.Volumes[i], fmt.Sprintf("spec.volumes[%d]", i)
		if v := volume.PersistentVolumeClaim; v != nil {
			add("PersistentVolumeClaim", v.ClaimName, path+".persistentVolumeClaim.claimName", nil)
		}
		if v := volume.ConfigMap; v != nil {
			add("ConfigMap", v.Name, path+".configMap.name", v.Optional)
		}
		if v := volume.Secret; v != nil {
			add("Secret", v.SecretName, path+".secret.secretName", v.Optional)
		}
	}
	for i := range pod.InitContainers {
		addEnvironment(&pod.InitContainers[i], fmt.Sprintf("spec.initContainers[%d]", i), add)
	}
	for i := range pod.Containers {
		addEnvironment(&pod.Containers[i], fmt.Sprintf("spec.containers[%d]", i), add)
	}
	return found
}

func addEnvironment(container *corev1.Container, path string, add func(kind, name, field string, optional *bool)) {
	for i := range container.EnvFrom {
		from, path := &container.EnvFrom[i], fmt.Sprintf("%s.envFrom[%d]", path, i)
		if v := from.ConfigMapRef; v != nil {
			add("ConfigMap", v.Name, path+".configMapRef.name", v.Optional)
		}
		if v := from.SecretRef; v != nil {
			add("Secret", v.Name, path+".secretRef.name", v.Optional)
		}
	}
	for i := range container.Env {
		from, path := container.Env[i].ValueFrom, fmt.Sprintf("%s.env[%d].valueFrom", path, i)
		if from == nil {
			continue
		}
		if v := from.ConfigMapKeyRef; v != nil {
			add("ConfigMap", v.Name, path+".configMapKeyRef.name", v.Optional)
		}
		if v := from.SecretKeyRef; v != nil {
			add("Secret", v.Name, path+".secretKeyRef.name", v.Optional)
		}
	}
}

// askReferencesOf warns of objects that the pod needs and that neither the cluster nor the manifest has.
func (s *Session) askReferencesOf(ctx context.Context, namespace string, pod *corev1.Pod, where locator, verdict *Verdict) error {
	for _, r := range references(&pod.Spec) {
		if s.manifest.has(r.kind, namespace, r.name) {
			continue
		}
		text, err := s.askReference(ctx, namespace, r, podOf(where))
		if err != nil {
			return err
		}
		if text != "" {
			verdict.Warnings = append(verdict.Warnings, text)
		}
	}
	return nil
}
