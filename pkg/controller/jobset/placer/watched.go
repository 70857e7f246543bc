// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// view is what is watched while a set asks for exclusive placement.
type view struct {
	nodes, pods, daemons, ranges, runtimeClasses, priorityClasses *informers.Informer
	// now returns the time.
	now func() time.Time
}

// indexNamespace is the index of limit ranges by namespace.
const indexNamespace = "namespace"

func declare(kind *informers.Kind, handle func(*informers.Informer)) *view {
	need := func(need informers.Need) *informers.Informer {
		informer := kind.Informer(need)
		handle(informer)
		return informer
	}
	asItIs := func(obj any) (any, error) { return obj, nil }
	return &view{
		nodes:   need(informers.Need{Resource: kind.Nodes(), Transform: transformNode}),
		pods:    need(informers.Need{Resource: kind.Pods(), Transform: transformPod}),
		daemons: need(informers.Need{Resource: kind.DaemonSets(), Transform: asItIs}),
		ranges: need(informers.Need{Resource: kind.LimitRanges(), Transform: asItIs,
			Indexers: cache.Indexers{indexNamespace: namespaceOf}}),
		runtimeClasses:  need(informers.Need{Resource: kind.RuntimeClasses(), Transform: asItIs}),
		priorityClasses: need(informers.Need{Resource: kind.PriorityClasses(), Transform: asItIs}),
	}
}

func namespaceOf(obj any) ([]string, error) {
	if ranges, ok := obj.(*corev1.LimitRange); ok {
		return []string{ranges.Namespace}, nil
	}
	return nil, nil
}

// meta is what a cache needs to know of an object.
type meta struct {
	name      string
	namespace unique.Handle[string]
	version   uint64
}

func metaOf(obj metav1.Object) meta {
	m := meta{name: obj.GetName(), namespace: unique.Make(obj.GetNamespace())}
	m.version, _ = strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // what is not well-formed is as good as absent
	return m
}

// GetObjectMeta returns what the cache needs to know of an object.
func (m *meta) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: m.name, Namespace: m.namespace.Value(), ResourceVersion: strconv.FormatUint(m.version, 10)}
}

type watchedNode struct {
	meta
	placement.Node
	// since is when the node came, or last became ready.
	since time.Time
}

func transformNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		return &watchedNode{metaOf(node), placement.NewNode(node), readySince(node)}, nil
	}
	return obj, nil
}

// readySince returns when a node came, or last became ready.
func readySince(node *corev1.Node) time.Time {
	since := node.CreationTimestamp.Time
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// sameNode reports whether a placement sees no difference between two states of a node. Kubelets write their nodes every few minutes.
func sameNode(a, b *watchedNode) bool {
	return a.Allocatable == b.Allocatable && slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints)
}

type watchedPod struct {
	meta
	placement.Pod
	// takesRoom is false for a pod without a node, and for one that has ended.
	takesRoom bool
}

func transformPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	var set string
	if name := pod.Labels[jobsetv1alpha2.JobSetNameKey]; name != "" {
		set = pod.Namespace + "/" + name
	}
	kept := &watchedPod{meta: metaOf(pod)}
	kept.Pod, kept.takesRoom = placement.NewPod(pod, set, pod.Labels[jobsetv1alpha2.JobKey])
	return kept, nil
}

// cluster returns what a placement is decided on.
func (v *view) cluster() placement.Cluster {
	var out placement.Cluster
	for _, obj := range v.nodes.List() {
		if node, ok := obj.(*watchedNode); ok {
			out.Nodes = append(out.Nodes, node.Node)
		}
	}
	for _, obj := range v.pods.List() {
		if pod, ok := obj.(*watchedPod); ok && pod.takesRoom {
			out.Pods = append(out.Pods, pod.Pod)
		}
	}
	for _, obj := range v.daemons.List() {
		daemon, ok := obj.(*appsv1.DaemonSet)
		if !ok {
			continue
		}
		if shape, err := placement.NewShape(&daemon.Spec.Template, v.environment(daemon.Namespace, &daemon.Spec.Template.Spec)); err == nil {
			out.Daemons = append(out.Daemons, placement.Daemon{Owner: placement.DaemonOwner(daemon.Namespace, daemon.Name), Shape: shape})
		}
	}
	return out
}

// environment returns what admission adds to pods of a namespace.
func (v *view) environment(namespace string, spec *corev1.PodSpec) placement.Environment {
	var env placement.Environment
	if spec.RuntimeClassName != nil {
		if obj, err := v.runtimeClasses.GetByKey(*spec.RuntimeClassName); err == nil {
			env.RuntimeClass, _ = obj.(*nodev1.RuntimeClass)
		}
	}
	if objs, err := v.ranges.ByIndex(indexNamespace, namespace); err == nil {
		for _, obj := range objs {
			if ranges, ok := obj.(*corev1.LimitRange); ok {
				env.LimitRanges = append(env.LimitRanges, ranges)
			}
		}
		slices.SortFunc(env.LimitRanges, func(a, b *corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	}
	env.PriorityClass = v.priorityClass(spec.PriorityClassName)
	return env
}

// priorityClass returns the class of the name, or the default one of the cluster: of several, the one of the lowest value.
func (v *view) priorityClass(name string) (found *schedulingv1.PriorityClass) {
	if name != "" {
		obj, err := v.priorityClasses.GetByKey(name)
		if err != nil {
			return nil
		}
		found, _ = obj.(*schedulingv1.PriorityClass)
		return found
	}
	for _, obj := range v.priorityClasses.List() {
		class, ok := obj.(*schedulingv1.PriorityClass)
		if ok && class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}
