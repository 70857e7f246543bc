// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readinessgroup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const (
	// pageSize is how many objects one answer holds, as for kubectl.
	pageSize = 500
	// maxOwners is how many owners are read. The size of groups is not known that need more.
	maxOwners = 1000
)

// key names a group of one prefix.
type key struct {
	cache.ObjectName
	prefix string
}

// loader reads groups.
type loader struct {
	clients         *cli.Clients
	namespace, name string
	now             time.Time
	sizes           *members.Sizes
	owners          int

	pods   map[key][]*members.Pod
	groups map[cache.ObjectName]*batchv1alpha1.PodReadinessGroup
	notes  []string
}

// load reads the groups of a namespace or of all, of one name or of all. Only what is needed of each pod is kept.
func load(ctx context.Context, clients *cli.Clients, namespace, name string, now time.Time) (*Report, error) {
	l := &loader{
		clients: clients, namespace: namespace, name: name, now: now,
		sizes: members.NewSizes(clients.Kube, clients.JobSets, clients.Dynamic, clock.RealClock{}),
		pods:  map[key][]*members.Pod{}, groups: map[cache.ObjectName]*batchv1alpha1.PodReadinessGroup{},
	}
	if err := l.loadGroups(ctx); err != nil {
		return nil, err
	}
	for _, prefix := range plan.Prefixes {
		if err := l.loadPods(ctx, prefix); err != nil {
			return nil, err
		}
	}
	report := &Report{Items: l.rows(ctx)}
	slices.Sort(l.notes)
	report.Notes = slices.Compact(l.notes)
	return report, nil
}

// loadGroups reads PodReadinessGroups. A cluster that does not serve them, or a user who may not read them, has groups of labels alone.
func (l *loader) loadGroups(ctx context.Context) error {
	options := metav1.ListOptions{Limit: pageSize}
	if l.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", l.name).String()
	}
	for {
		list, err := l.clients.JobSets.BatchV1alpha1().PodReadinessGroups(l.namespace).List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsServiceUnavailable(err) {
			l.notes = append(l.notes, "PodReadinessGroups are not known: "+cli.Clean(err.Error()))
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing podreadinessgroups: %w", err)
		}
		for i := range list.Items {
			group := &list.Items[i]
			l.groups[cache.MetaObjectToName(group)] = group
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// loadPods reads the pods of a prefix.
func (l *loader) loadPods(ctx context.Context, prefix plan.Prefix) error {
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: prefix.GroupKey}
	if l.name != "" {
		options.LabelSelector += "=" + l.name
	}
	for {
		list, err := l.clients.Kube.CoreV1().Pods(l.namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		for i := range list.Items {
			l.add(&list.Items[i], prefix)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (l *loader) add(pod *corev1.Pod, prefix plan.Prefix) {
	kept := members.Of(pod, prefix)
	if kept.Group == "" {
		return
	}
	of := key{cache.NewObjectName(pod.Namespace, kept.Group), prefix.Name}
	l.pods[of] = append(l.pods[of], kept)
}

// rows returns the groups that pods name, and the PodReadinessGroups without pods.
func (l *loader) rows(ctx context.Context) []Row {
	rows := []Row{}
	named := map[cache.ObjectName]bool{}
	for _, prefix := range plan.Prefixes {
		for of, pods := range l.pods {
			if of.prefix == prefix.Name {
				named[of.ObjectName] = true
				rows = append(rows, l.row(ctx, of.ObjectName, prefix, pods))
			}
		}
	}
	for name := range l.groups {
		if !named[name] {
			rows = append(rows, l.row(ctx, name, plan.Prefixes[0], nil))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.LabelPrefix, b.LabelPrefix))
	})
	return rows
}

func (l *loader) row(ctx context.Context, name cache.ObjectName, prefix plan.Prefix, pods []*members.Pod) Row {
	group := l.groups[name]
	obs := plan.Observed{Prefix: prefix, Group: group, Now: l.now}
	r := Row{Namespace: name.Namespace, Name: name.Name, LabelPrefix: prefix.Name, ReadyWhen: batchv1alpha1.ReadyWhenRunning}
	first := l.now.Unix()
	for _, pod := range pods {
		obs.Pods = append(obs.Pods, &pod.Pod)
		first = min(first, pod.Created)
	}
	r.CreateTime = metav1.Unix(first, 0)
	if group != nil {
		r.PodReadinessGroup, r.CreateTime = true, group.CreationTimestamp
		if group.Spec.ReadyWhen != "" {
			r.ReadyWhen = group.Spec.ReadyWhen
		}
	}
	l.addOwners(ctx, name, &obs)
	p := plan.Decide(obs)
	r.Pods, r.Running, r.Ready, r.State, r.Message = p.Pods, p.Running, p.Labeled, p.Phase(group), p.Message
	if p.SizeKnown && p.Size > 0 {
		r.Size, r.Source = p.Size, p.Source
	}
	return r
}

// addOwners reads the owners of the pods if the size of the group may depend on them.
func (l *loader) addOwners(ctx context.Context, name cache.ObjectName, obs *plan.Observed) {
	if source := plan.Decide(*obs).Source; source != plan.FromOwners {
		return
	}
	owners := plan.Owners(obs.Pods)
	if l.owners += len(owners); l.owners > maxOwners {
		l.notes = append(l.notes, fmt.Sprintf("sizes of some groups are not known: their pods have more than %d owners", maxOwners))
		obs.OwnersError = "too many owners"
		return
	}
	sizes, err := l.sizes.Read(ctx, members.Group{Namespace: name.Namespace, Name: name.Name, Prefix: obs.Prefix}, owners, time.Hour)
	obs.Owners = sizes
	if err != nil {
		obs.OwnersError = cli.Clean(err.Error())
		l.notes = append(l.notes, "sizes of some groups are not known: "+obs.OwnersError)
	}
}
