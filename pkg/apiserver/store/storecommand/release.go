// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/workqueue"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

// workers is how many objects are released at the same time.
const workers = 16

func newReleaseOrphans(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release-orphans",
		Short: "Keep the Jobs and StatefulSets whose owners a refused store does not have",
		Long: "Take the reference to the owner off all objects whose owners are not in the store that a server refuses: StatefulSets, Jobs, " +
			"volume claims,\n" +
			"Services, ControllerRevisions, PodGroups and Workloads. The garbage collector then does not delete them when the store is accepted. " +
			"Jobs run to their\n" +
			"end, and StatefulSets go on. No set restarts them, and nothing deletes them afterwards: delete them with kubectl. References to " +
			"other owners stay.\n\n" +
			"Run this only if the right store is lost for good. A set that comes back does not take its children back.",
		Example: "  # What would be released?\n  jobset-apiserver store release-orphans --dry-run=client\n\n" +
			"  # Release it\n  jobset-apiserver store release-orphans",
		Args: noArguments,
	}
	var dryRun dryRun
	dryRun.addFlag(cmd)
	flags := addClusterFlags(cmd)
	cmd.RunE = connecting(connect, flags, dryRun.validate, func(ctx context.Context, c *clients) error {
		_, record, err := c.getRecord(ctx)
		if err != nil {
			return err
		}
		lost, err := c.getLostOwners(ctx, record)
		if err != nil {
			return err
		}
		r := &release{clients: c, streams: streams, lost: lost, owners: lost, dryRun: dryRun}
		return r.run(ctx)
	})
	return cmd
}

// release is `store release-orphans`.
type release struct {
	*clients
	streams genericiooptions.IOStreams
	lost    *lostOwners
	// owners finds the references that are taken off.
	owners interface {
		referencesOf(object *metav1.PartialObjectMetadata) []int
	}
	dryRun dryRun
	// failed is how many objects were not released.
	failed int
}

// run releases all resources. An object that cannot be released keeps no other from being.
func (r *release) run(ctx context.Context) error {
	resources, err := r.owned(ctx)
	if err != nil {
		return err
	}
	var counts []string
	for _, resource := range resources {
		count := 0
		err := owners.EachPage(ctx, r.metadata, resource.GroupVersionResource, func() {}, func(page []metav1.PartialObjectMetadata) {
			count += r.page(ctx, resource.GroupVersionResource, page)
		})
		if err != nil {
			return explain(err)
		}
		if count > 0 {
			counts = append(counts, plural(count, resource.Kind))
		}
	}
	if len(counts) == 0 {
		counts = []string{plural(0, "object")}
	}
	fmt.Fprintf(r.streams.Out, "%s released%s\n", strings.Join(counts, ", "), r.dryRun.suffix())
	if r.lost.More {
		fmt.Fprintln(r.streams.ErrOut, "The list of lost owners is not complete: run the command again until it releases nothing, at least a "+
			"minute later each time.")
	}
	if r.failed > 0 {
		return fmt.Errorf("%s not released: correct the causes above and run the command again", was(r.failed))
	}
	return nil
}

// errInterrupted: the command ended before it came to the object.
var errInterrupted = errors.New("the command was interrupted")

func was(count int) string {
	if count == 1 {
		return "1 object was"
	}
	return fmt.Sprintf("%d objects were", count)
}

// page releases what a page has of lost owners, and returns how many objects were released.
func (r *release) page(ctx context.Context, resource schema.GroupVersionResource, page []metav1.PartialObjectMetadata) int {
	var orphans []*metav1.PartialObjectMetadata
	for i := range page {
		if len(r.lost.referencesOf(&page[i])) > 0 {
			orphans = append(orphans, &page[i])
		}
	}
	errs := slices.Repeat([]error{errInterrupted}, len(orphans))
	workqueue.ParallelizeUntil(ctx, workers, len(orphans), func(i int) { errs[i] = r.one(ctx, resource, orphans[i]) })
	count := 0
	for i, orphan := range orphans {
		name := strings.TrimSuffix(resource.Resource, "s") + "/" + orphan.Name
		if errs[i] == nil {
			count++
			fmt.Fprintf(r.streams.Out, "%s released in namespace %s%s\n", name, orphan.Namespace, r.dryRun.suffix())
			continue
		}
		r.failed++
		fmt.Fprintf(r.streams.ErrOut, "%s not released in namespace %s: %v\n", name, orphan.Namespace, errs[i])
	}
	return count
}
