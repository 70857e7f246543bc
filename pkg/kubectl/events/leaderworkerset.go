// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// LeaderWorkerSet is the Loader of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (Members, error) {
	return load(ctx, c.JobSets.LeaderworkersetV1().LeaderWorkerSets(c.Namespace), name, membersOfLeaderWorkerSet)
}

// leaderWorkerSet are the members of a LeaderWorkerSet.
type leaderWorkerSet struct {
	*leaderworkersetv1.LeaderWorkerSet
	// claims are the prefixes of the names of volume claims, up to the name of the pod.
	claims   []string
	workload *regexp.Regexp
}

func membersOfLeaderWorkerSet(set *leaderworkersetv1.LeaderWorkerSet) leaderWorkerSet {
	workload := regexp.MustCompile("^leaderworkerset-" + regexp.QuoteMeta(set.Name) + "-[0-9]+-[a-z0-9]{5}$")
	g := leaderWorkerSet{LeaderWorkerSet: set, workload: workload}
	for i := range set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates {
		g.claims = append(g.claims, set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates[i].Name+"-")
	}
	return g
}

// Since implements Members.
func (g leaderWorkerSet) Since() time.Time { return g.CreationTimestamp.Time }

// Has implements Members.
func (g leaderWorkerSet) Has(kind, name string) bool {
	switch kind {
	case cli.LeaderWorkerSet.Title:
		return name == g.Name
	case "StatefulSet", "Service":
		return name == g.Name || g.numbers(name) == 1
	case "Pod":
		n := g.numbers(name)
		return n == 1 || n == 2
	case "PersistentVolumeClaim":
		return slices.ContainsFunc(g.claims, func(prefix string) bool {
			pod, found := strings.CutPrefix(name, prefix)
			return found && g.Has("Pod", pod)
		})
	case "PodGroup":
		group, _, found := cutLast(name)
		return found && g.numbers(group) == 1
	case "Workload":
		return g.workload.MatchString(name)
	}
	return false
}

// numbers returns how many numbers follow the name of the set, as in set-replica-worker; 0 for any other name.
func (g leaderWorkerSet) numbers(name string) int {
	rest, found := strings.CutPrefix(name, g.Name+"-")
	if !found {
		return 0
	}
	parts := strings.Split(rest, "-")
	if slices.ContainsFunc(parts, func(part string) bool { return !isNumber(part) }) {
		return 0
	}
	return len(parts)
}

func cutLast(name string) (before, after string, found bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}
