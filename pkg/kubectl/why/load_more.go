// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What is read once the set, its Jobs and its pods are known: only what they point at.

// byName reads objects by name, a bounded number of them, and keeps nil for those that do not exist.
func byName[T any](ctx context.Context, l *loader, source string, names []string, into map[string]*T,
	get func(context.Context, string) (*T, error)) {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxNamed {
		names = names[:maxNamed]
	}
	var reads []func(context.Context)
	for _, name := range names {
		reads = append(reads, func(ctx context.Context) {
			found, err := get(ctx, name)
			if err != nil && (!apierrors.IsNotFound(err) || cli.IsNotServed(err)) {
				l.gap(source, err)
				return
			}
			if err != nil {
				found = nil
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			into[name] = found
		})
	}
	l.parallel(ctx, reads...)
}

// readNodes reads the nodes of pods in trouble.
func (l *loader) readNodes(ctx context.Context) {
	var names []string
	for _, pod := range l.e.Pods {
		if pod.Spec.NodeName != "" && !snapshot.PodEnded(pod) && (!snapshot.PodReady(pod) || pod.DeletionTimestamp != nil) {
			names = append(names, pod.Spec.NodeName)
		}
	}
	if s := l.e.subject(); s != nil && s.failedOn() != "" {
		names = append(names, s.failedOn())
	}
	byName(ctx, l, "nodes", names, l.e.Nodes, func(ctx context.Context, name string) (*corev1.Node, error) {
		return l.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
}

// readClaims reads the volume claims of pods that wait for a node or for their volumes.
func (l *loader) readClaims(ctx context.Context) {
	var names []string
	for _, pod := range l.e.Pods {
		if pod.Status.Phase == corev1.PodPending {
			names = append(names, claimsOf(pod)...)
		}
	}
	byName(ctx, l, "persistentvolumeclaims", names, l.e.Claims, func(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
		return l.Kube.CoreV1().PersistentVolumeClaims(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

// readCandidates lists the nodes that fit the labels which an unschedulable pod asks for.
func (l *loader) readCandidates(ctx context.Context) {
	for _, pod := range l.e.Pods {
		if c := snapshot.PodCondition(pod, corev1.PodScheduled); c == nil || c.Reason != corev1.PodReasonUnschedulable || !asksForNodes(pod) {
			continue
		}
		list, err := l.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{
			LabelSelector: labels.SelectorFromSet(pod.Spec.NodeSelector).String(), ResourceVersion: "0", Limit: maxNodes,
		})
		if !l.got("nodes", err) {
			return
		}
		for i := range list.Items {
			if fitsNode(pod, &list.Items[i]) {
				l.e.Candidates = append(l.e.Candidates, list.Items[i])
			}
		}
		l.e.CandidatesRead = list.Continue == "" || len(l.e.Candidates) > 0
		return
	}
}

// readQuotas reads the quotas of the namespace if a warning speaks of one.
func (l *loader) readQuotas(ctx context.Context) {
	if !slices.ContainsFunc(l.e.Events, func(e corev1.Event) bool { return strings.Contains(e.Message, "quota") }) {
		return
	}
	cached := metav1.ListOptions{ResourceVersion: "0"}
	if list, err := l.Kube.CoreV1().ResourceQuotas(l.Namespace).List(ctx, cached); l.got("resourcequotas", err) {
		l.e.Quotas = list.Items
	}
}

func (l *loader) readService(ctx context.Context, d *diagnosis) {
	if finished(d.JobSet) || subdomain(d.JobSet) == "" {
		return
	}
	byName(ctx, l, "services", []string{subdomain(d.JobSet)}, l.e.Services, func(ctx context.Context, name string) (*corev1.Service, error) {
		return l.Kube.CoreV1().Services(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// subdomain is the name of the Service of the set; empty if the set has none.
func subdomain(js *jobsetv1alpha2.JobSet) string {
	network := js.Spec.Network
	switch {
	case network == nil || !ptr.Deref(network.EnableDNSHostnames, false):
		return ""
	case network.Subdomain != "":
		return network.Subdomain
	}
	return js.Name
}

// takenNames are the names of the Jobs that the set lacks because others have them.
func takenNames(d *diagnosis) (names []string) {
	c := isTrue(d.JobSet, jobsetv1alpha2.ChildNameConflict)
	if c == nil {
		return nil
	}
	for _, name := range d.missing {
		if slices.Contains(strings.Fields(c.Message), name) {
			names = append(names, name)
		}
	}
	return names
}

// readTakenJobs reads the Jobs of others under the names.
func (l *loader) readTakenJobs(ctx context.Context, names []string) {
	byName(ctx, l, "jobs", names, l.e.TakenJobs, func(ctx context.Context, name string) (*batchv1.Job, error) {
		return l.Kube.BatchV1().Jobs(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// readPodGroups reads the groups of pods that wait for a node, in the version that the cluster serves.
func (l *loader) readPodGroups(ctx context.Context) {
	var names []string
	for _, pod := range l.e.Pods {
		if group := pod.Spec.SchedulingGroup; group != nil && pod.Spec.NodeName == "" {
			names = append(names, ptr.Deref(group.PodGroupName, ""))
		}
	}
	if len(names) == 0 {
		return
	}
	groups, err := l.Discovery.ServerGroups()
	if !l.got("podgroups", err) {
		return
	}
	l.e.PodGroups = map[string]*unstructured.Unstructured{}
	for i := range groups.Groups {
		if groups.Groups[i].Name != gangplan.Kubernetes.Resource().Group {
			continue
		}
		for _, version := range groups.Groups[i].Versions {
			resource := gangplan.Kubernetes.Resource()
			resource.Version = version.Version
			if list, err := l.Discovery.ServerResourcesForGroupVersion(version.GroupVersion); err == nil &&
				slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
					return r.Name == resource.Resource
				}) {
				byName(ctx, l, "podgroups", names, l.e.PodGroups, func(ctx context.Context, name string) (*unstructured.Unstructured, error) {
					return l.Dynamic.Resource(resource).Namespace(l.Namespace).Get(ctx, name, metav1.GetOptions{})
				})
				return
			}
		}
	}
}

// readNear looks for what the user may have meant.
func (l *loader) readNear(ctx context.Context) {
	if !apierrors.IsNotFound(l.e.Unread) || cli.IsNotServed(l.e.Unread) {
		return
	}
	kindOf := map[string]string{}
	for _, k := range []*kind{l.e.kind(), setKind(), sequenceKind(), leaderWorkerSetKind(), rolesKind()} {
		found, err := k.names(ctx, l, l.Namespace, metav1.ListOptions{Limit: maxNodes})
		if err != nil && k.Title == l.e.kind().Title {
			l.gap(k.Names[1], err)
		}
		for _, object := range found {
			if kindOf[object.Name] == "" {
				kindOf[object.Name] = k.Short()
			}
		}
	}
	for _, name := range cli.Near(l.e.Name, slices.Collect(maps.Keys(kindOf))) {
		l.e.Near = append(l.e.Near, kindOf[name]+"/"+name)
	}
}

func (l *loader) readElsewhere(ctx context.Context) {
	if !apierrors.IsNotFound(l.e.Unread) || cli.IsNotServed(l.e.Unread) {
		return
	}
	found, err := l.e.kind().names(ctx, l, metav1.NamespaceAll, metav1.ListOptions{FieldSelector: "metadata.name=" + l.e.Name,
		Limit: maxNamed})
	if !l.got(l.e.kind().Names[1]+" of other namespaces", err) {
		return
	}
	for _, object := range found {
		if object.Name == l.e.Name {
			l.e.Elsewhere = append(l.e.Elsewhere, object.Namespace)
		}
	}
}
