// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/workqueue"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

// maxConflicts is how often an object is tried that others write at the same time.
const maxConflicts = 5

func newMigrate(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	var dryRun dryRun
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Store all objects in the form of this version",
		Long: "Update every object without a change. The server writes those that are stored in another encoding, in another version, or\n" +
			"encrypted with another key, and leaves the others alone. Nothing else changes, and the command may be repeated. Run it after\n" +
			"an upgrade that asks for it, or after the encryption configuration was changed. \"store verify\" of a backup counts such objects.",
		Args: noArguments,
	}
	dryRun.addFlag(cmd)
	flags := addClusterFlags(cmd)
	cmd.RunE = connecting(connect, flags, dryRun.validate, func(ctx context.Context, c *clients) error {
		m := &migration{clients: c, streams: streams, dryRun: dryRun}
		return m.run(ctx)
	})
	return cmd
}

// migration is `store migrate`.
type migration struct {
	*clients
	streams genericiooptions.IOStreams
	dryRun  dryRun
	// served is how many resources the cluster serves.
	served int
	// named is how many objects were reported as not written.
	named int
}

// run migrates all resources. An object that cannot be written keeps no other from being.
func (m *migration) run(ctx context.Context) error {
	failed := 0
	for _, group := range apigroups.All().InEtcd() {
		for _, name := range group.Resources {
			count, err := m.resource(ctx, group.Versions[0].WithResource(name))
			if err != nil {
				return explain(err)
			}
			failed += count
		}
	}
	if m.served == 0 {
		return errors.New("the cluster serves no resources of jobset-apiserver: check the APIServices, or use the kubeconfig of another " +
			"cluster (--kubeconfig, --context)")
	}
	if failed > 0 {
		return fmt.Errorf("%s not written: correct the causes above and run the command again", was(failed))
	}
	return nil
}

// progress counts the objects of a resource.
type progress struct{ seen, written, failed int }

func (m *migration) resource(ctx context.Context, resource schema.GroupVersionResource) (failed int, err error) {
	var total progress
	err = owners.EachPage(ctx, m.metadata, resource, func() { total = progress{written: total.written, failed: total.failed} },
		func(page []metav1.PartialObjectMetadata) {
			if total.seen > 0 {
				fmt.Fprintf(m.streams.ErrOut, "%s: %s so far, %d written\n", resource.GroupResource(), plural(total.seen, "object"), total.written)
			}
			m.page(ctx, resource, page, &total)
		})
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(m.streams.ErrOut, "%s: not served (--runtime-config); its objects stay as they are\n", resource.GroupResource())
		return 0, nil
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, err
	}
	m.served++
	fmt.Fprintf(m.streams.Out, "%s: %s, %d written%s\n", resource.GroupResource(), plural(total.seen, "object"), total.written,
		m.dryRun.suffix())
	return total.failed, nil
}

// page writes the objects of a page.
func (m *migration) page(ctx context.Context, resource schema.GroupVersionResource, page []metav1.PartialObjectMetadata, total *progress) {
	written, errs := make([]bool, len(page)), slices.Repeat([]error{errInterrupted}, len(page))
	workqueue.ParallelizeUntil(ctx, workers, len(page), func(i int) { written[i], errs[i] = m.one(ctx, resource, &page[i]) })
	for i := range page {
		total.seen++
		if written[i] {
			total.written++
		}
		if errs[i] == nil {
			continue
		}
		if total.failed++; m.named < maxProblems {
			m.named++
			fmt.Fprintf(m.streams.ErrOut, "%s %s/%s not written: %v\n", resource.GroupResource(), page[i].Namespace, page[i].Name, errs[i])
		}
	}
}

// one updates an object without a change, and returns whether it was written. Who else writes it writes the present form too, and so does
// who creates another of its name.
func (m *migration) one(ctx context.Context, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) (bool, error) {
	if m.dryRun.client() {
		return false, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, object.UID)
	objects := m.metadata.Resource(resource).Namespace(object.Namespace)
	for attempt := 1; ; attempt++ {
		updated, err := objects.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: m.dryRun.options()})
		switch {
		case err == nil:
			return updated.ResourceVersion != object.ResourceVersion, nil
		case apierrors.IsNotFound(err):
			return false, nil
		case !apierrors.IsConflict(err):
			return false, err
		}
		current, getErr := objects.Get(ctx, object.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr), getErr == nil && current.UID != object.UID:
			return false, nil
		case attempt == maxConflicts:
			return false, err
		}
	}
}
