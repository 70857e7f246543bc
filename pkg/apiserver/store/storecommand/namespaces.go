// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/workqueue"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Values of --namespaces.
const (
	// namespacesMissing is for objects without a UID of their namespace that are not older than it.
	namespacesMissing = "missing"
	// namespacesAll is also for those of an earlier namespace of the same name.
	namespacesAll = "all"
)

// namespaceRecords is `store accept --namespaces`.
type namespaceRecords struct {
	*clients
	streams genericiooptions.IOStreams
	// all means that objects of earlier namespaces are accepted, too, and only that no other namespace than this one is looked at.
	all    bool
	only   string
	dryRun dryRun

	// present are the namespaces that were met, and counts what was found in them.
	present map[string]presentNamespace
	counts  map[string]*namespaceCounts
	// served is how many resources the cluster serves, and named how many objects were reported as not written.
	served, named int
}

// presentNamespace is a namespace of the main cluster. Its UID is empty if it does not exist, or is being deleted.
type presentNamespace struct {
	uid     types.UID
	created metav1.Time
}

// namespaceCounts count the objects of one namespace.
type namespaceCounts struct {
	accepted, earlier, absent, unreadable, failed int
}

func newNamespaceRecords(c *clients, streams genericiooptions.IOStreams, a acceptance) *namespaceRecords {
	return &namespaceRecords{
		clients: c, streams: streams, all: a.namespaces == namespacesAll, only: a.namespace, dryRun: a.dryRun,
		present: map[string]presentNamespace{}, counts: map[string]*namespaceCounts{},
	}
}

// run looks at all objects, in pages. An object that cannot be written keeps no other from being. What was written is not
// written again, so that the command can be repeated.
func (n *namespaceRecords) run(ctx context.Context) error {
	all := apigroups.All().InEtcd()
	for _, group := range all {
		for _, name := range group.Resources {
			if resource := group.Versions[0].WithResource(name); all.RecordsNamespace(resource.GroupResource()) {
				if err := n.resource(ctx, resource); err != nil {
					return explain(err)
				}
			}
		}
	}
	if n.served == 0 {
		return errors.New("the cluster serves no resources of jobset-apiserver: if a server refuses its store, accept that first " +
			"(\"store status\"); otherwise check the APIServices, or use the kubeconfig of another cluster (--kubeconfig, --context)")
	}
	return n.report()
}

func (n *namespaceRecords) resource(ctx context.Context, resource schema.GroupVersionResource) error {
	routed, err := n.routed(ctx, resource.GroupVersion())
	if err != nil {
		return err
	}
	if !routed { // the objects of a CustomResourceDefinition belong to another controller
		fmt.Fprintf(n.streams.ErrOut, "%s: not routed to jobset-apiserver; its objects stay as they are\n", resource.GroupResource())
		return nil
	}
	before := n.clone()
	listing, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	begin := func() { n.counts = merged(before, n.counts, n.dryRun) }
	err = owners.EachPageIn(listing, n.metadata, resource, n.only, begin, func(page []metav1.PartialObjectMetadata) {
		if failed == nil {
			failed = n.page(ctx, resource, page)
		}
		if failed != nil {
			cancel()
		}
	})
	switch {
	case failed != nil:
		return failed
	case apierrors.IsNotFound(err):
		fmt.Fprintf(n.streams.ErrOut, "%s: not served (--runtime-config); its objects stay as they are\n", resource.GroupResource())
		return nil
	case err != nil:
		return err
	}
	n.served++
	return ctx.Err()
}

// routed returns whether kube-apiserver sends requests for a group to another server.
func (c *clients) routed(ctx context.Context, version schema.GroupVersion) (bool, error) {
	name := version.Version + "." + version.Group
	service, err := c.dynamic.Resource(owners.APIServices).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading APIService %s: %w", name, err)
	}
	return owners.Routed(service), nil
}

// clone returns what was counted in the resources before.
func (n *namespaceRecords) clone() map[string]namespaceCounts {
	copied := make(map[string]namespaceCounts, len(n.counts))
	for name, counts := range n.counts {
		copied[name] = *counts
	}
	return copied
}

// merged returns the counts when a list starts, or starts from the beginning because it has expired: what was written by then stays
// counted, because it is not found again.
func merged(before map[string]namespaceCounts, now map[string]*namespaceCounts, dryRun dryRun) map[string]*namespaceCounts {
	next := map[string]*namespaceCounts{}
	for name, counts := range before {
		next[name] = &counts
	}
	if dryRun.value != "none" {
		return next
	}
	for name, counts := range now {
		if next[name] == nil {
			next[name] = &namespaceCounts{}
		}
		next[name].accepted = counts.accepted
	}
	return next
}

// page writes the objects of a page that need it.
func (n *namespaceRecords) page(ctx context.Context, resource schema.GroupVersionResource, page []metav1.PartialObjectMetadata) error {
	var objects []*metav1.PartialObjectMetadata
	for i := range page {
		object := &page[i]
		if err := n.meet(ctx, object.Namespace); err != nil {
			return err
		}
		if n.wanted(object) {
			objects = append(objects, object)
		}
	}
	errs := slices.Repeat([]error{errInterrupted}, len(objects))
	workqueue.ParallelizeUntil(ctx, workers, len(objects), func(i int) { errs[i] = n.one(ctx, resource, objects[i]) })
	for i, object := range objects {
		counts := n.counts[object.Namespace]
		if errs[i] == nil {
			counts.accepted++
			continue
		}
		if counts.failed++; n.named < maxProblems {
			n.named++
			fmt.Fprintf(n.streams.ErrOut, "%s %s/%s not accepted: %v\n", resource.GroupResource(), object.Namespace, object.Name, explain(errs[i]))
		}
	}
	return nil
}

// meet reads a namespace that was not met before.
func (n *namespaceRecords) meet(ctx context.Context, name string) error {
	if n.counts[name] == nil {
		n.counts[name] = &namespaceCounts{}
	}
	if _, known := n.present[name]; known {
		return nil
	}
	found, err := n.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		n.present[name] = presentNamespace{}
	case err != nil:
		return fmt.Errorf("reading namespace %s: %w", name, err)
	case found.DeletionTimestamp != nil:
		n.present[name] = presentNamespace{}
	default:
		n.present[name] = presentNamespace{found.UID, found.CreationTimestamp}
	}
	return nil
}

// wanted returns whether an object gets the UID of its namespace, and counts those that need it and do not get it.
func (n *namespaceRecords) wanted(object *metav1.PartialObjectMetadata) bool {
	present, counts := n.present[object.Namespace], n.counts[object.Namespace]
	recorded := types.UID(object.Annotations[namespaceuid.Annotation])
	switch {
	case object.DeletionTimestamp != nil, present.uid != "" && recorded == present.uid:
		return false
	case unreadable.Is(object):
		counts.unreadable++
		return false
	case present.uid == "":
		counts.absent++
		return false
	case !n.all && (recorded != "" || object.CreationTimestamp.Before(&present.created)):
		counts.earlier++
		return false
	}
	return true
}
