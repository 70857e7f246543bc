// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"strconv"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// mostIndexes is how many indexes are suggested at most.
const mostIndexes = 1000

// LeaderWorkerSet are the Values of LeaderWorkerSets.
var LeaderWorkerSet = Values{
	"group":       ofLeaderWorkerSet(func(set *leaderworkersetv1.LeaderWorkerSet) []string { return indexes(int(helper.Replicas(set))) }),
	"worker":      ofLeaderWorkerSet(func(set *leaderworkersetv1.LeaderWorkerSet) []string { return indexes(int(helper.Size(set))) }),
	"container":   ofLeaderWorkerSet(containersOfLeaderWorkerSet),
	"to-revision": formerRevisions,
}

// formerRevisions are the numbers of the revisions to which a set can be rolled back, the newest first.
func formerRevisions(ctx context.Context, c *cli.Clients, name string, _ *pflag.FlagSet) ([]string, error) {
	set, err := c.JobSets.LeaderworkersetV1().LeaderWorkerSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	revisions, err := snapshot.Revisions(ctx, c, set)
	if err != nil {
		return nil, err
	}
	// The last one is the current one.
	var numbers []string
	for i := len(revisions) - 2; i >= 0; i-- {
		numbers = append(numbers, strconv.FormatInt(revisions[i].Revision, 10))
	}
	return numbers, nil
}

func ofLeaderWorkerSet(values func(*leaderworkersetv1.LeaderWorkerSet) []string) func(context.Context, *cli.Clients, string,
	*pflag.FlagSet) ([]string, error) {
	return func(ctx context.Context, c *cli.Clients, name string, _ *pflag.FlagSet) ([]string, error) {
		set, err := c.JobSets.LeaderworkersetV1().LeaderWorkerSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return values(set), nil
	}
}

// indexes are the numbers from 0 up, so many of them.
func indexes(n int) (out []string) {
	for i := range min(n, mostIndexes) {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

// containersOfLeaderWorkerSet are the containers of leaders and workers, in the order in which they start.
func containersOfLeaderWorkerSet(set *leaderworkersetv1.LeaderWorkerSet) []string {
	return containerNames(&helper.LeaderTemplate(set).Spec, &set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec)
}
