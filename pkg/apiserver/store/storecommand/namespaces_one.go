// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// errNotRecorded: the server keeps what it knows better.
var errNotRecorded = errors.New("the server did not record the namespace: it was deleted and created again in between, or the server has " +
	"not seen it yet; run the command again")

// one writes the UID of the namespace into an object. One that changes at the same time is looked at again, and one that is gone, or
// that needs no UID any more, is no error.
func (n *namespaceRecords) one(ctx context.Context, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) error {
	client, uid := n.metadata.Resource(resource).Namespace(object.Namespace), object.UID
	want := n.present[object.Namespace].uid
	for try := 1; ; try++ {
		if n.dryRun.client() {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": uid, "resourceVersion": object.ResourceVersion, "annotations": map[string]any{namespaceuid.Annotation: want},
		}})
		if err != nil {
			return err
		}
		updated, err := client.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: n.dryRun.options()})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil && types.UID(updated.Annotations[namespaceuid.Annotation]) != want:
			return errNotRecorded
		case err == nil, !apierrors.IsConflict(err), try == maxConflicts:
			return err
		}
		if object, err = client.Get(ctx, object.Name, metav1.GetOptions{}); err != nil {
			return utilerrors.FilterOut(err, apierrors.IsNotFound)
		}
		if object.UID != uid || object.DeletionTimestamp != nil || types.UID(object.Annotations[namespaceuid.Annotation]) == want {
			return nil
		}
	}
}

// report prints the counts of each namespace, and what is left to do.
func (n *namespaceRecords) report() error {
	var total namespaceCounts
	namespaces := 0
	for _, name := range slices.Sorted(maps.Keys(n.counts)) {
		c := n.counts[name]
		if c.accepted > 0 {
			namespaces++
			fmt.Fprintf(n.streams.Out, "namespace %s: %s accepted%s\n", name, plural(c.accepted, "object"), n.dryRun.suffix())
		}
		for _, left := range []struct {
			count int
			why   string
		}{
			{c.earlier, "of an earlier namespace of this name"}, {c.absent, "of a namespace that does not exist or is being deleted"},
			{c.unreadable, "that cannot be read"},
		} {
			if left.count > 0 {
				fmt.Fprintf(n.streams.Out, "namespace %s: %s %s left alone\n", name, plural(left.count, "object"), left.why)
			}
		}
		total.accepted, total.earlier, total.failed = total.accepted+c.accepted, total.earlier+c.earlier, total.failed+c.failed
	}
	fmt.Fprintf(n.streams.Out, "%s in %s accepted%s\n", plural(total.accepted, "object"), plural(namespaces, "namespace"), n.dryRun.suffix())
	if total.earlier > 0 {
		fmt.Fprintf(n.streams.ErrOut, "Objects of an earlier namespace of the same name belong to its former users. If they belong to the "+
			"present ones, for example because\nthe cluster was built again, accept them with --namespaces=%s, and with --namespace for a single "+
			"namespace.\n", namespacesAll)
	}
	if total.failed > 0 {
		return fmt.Errorf("%s not accepted: correct the causes above and run the command again", was(total.failed))
	}
	return nil
}
