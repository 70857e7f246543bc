// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/placer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// PlacementState is what would become of Jobs with exclusive placement.
type PlacementState string

const (
	// Placed is that each Job would get a topology domain.
	Placed PlacementState = helper.ReasonPlaced
	// NoDomain is that there are not enough domains with room.
	NoDomain PlacementState = helper.ReasonNoDomain
	// Later is that the set is suspended, and gets its domains when it is resumed.
	Later PlacementState = "Later"
	// Ignored is that the feature gate is off.
	Ignored PlacementState = "Ignored"
	// NotKnown is that the user has no permission to read what decides, or that it cannot be read in time.
	NotKnown PlacementState = "Unknown"
)

// Placement is what would become of Jobs with exclusive placement.
type Placement struct {
	State PlacementState `json:"state"`
	// Message explains the state. It is absent if each Job has a domain.
	Message string `json:"message,omitempty"`
	// Jobs are the domains of the Jobs, as the controller would choose them now.
	Jobs []PlacedJob `json:"jobs,omitempty"`
}

// PlacedJob is a Job and the topology domain that it would get.
type PlacedJob struct {
	Job string `json:"job"`
	// TopologyKey is the label of nodes whose values are the domains.
	TopologyKey string `json:"topologyKey"`
	Domain      string `json:"domain"`
}

const (
	// maxNodes and maxPods are how many of a cluster are read at most to choose domains.
	maxNodes = 10_000
	maxPods  = 100_000
	// placeWithin is how long that may take.
	placeWithin = 20 * time.Second
	// shownJobs is how many Jobs are shown with their domains.
	shownJobs = 20
	gate      = "ExclusivePlacement"
)

// previewPlacement says what would become of Jobs with exclusive placement, if the set has any. It reads the feature gate of the server.
// The controller, which chooses the domains, does not publish its own.
func (p *previewer) previewPlacement(ctx context.Context, gatesKnown bool) {
	if !domains.AskedFor(p.js) {
		return
	}
	out := &Placement{}
	switch {
	case !gatesKnown:
		out.State, out.Message = NotKnown, "whether the feature gate "+gate+" is on is not known; while it is off, the annotation "+
			jobsetv1alpha2.ExclusiveKey+" is ignored"
	case !p.placement:
		out.State, out.Message = Ignored, "the annotation "+jobsetv1alpha2.ExclusiveKey+" is ignored, because the feature gate "+gate+
			" is off: turn it on in both programs with --feature-gates="+gate+"=true"
	case ptr.Deref(p.js.Spec.Suspend, false):
		out.State, out.Message = Later, "the Jobs get topology domains when the set is resumed"
	default:
		placed, err := p.place(ctx, p.js)
		out.fill(p.js, placed, err)
	}
	p.out.Placement = out
	if out.Message != "" {
		p.out.Notes = append(p.out.Notes, "exclusive placement: "+out.Message)
	}
}

// fill notes the answer to the question for domains.
func (out *Placement) fill(js *jobsetv1alpha2.JobSet, placed *domains.Placed, err error) {
	switch {
	case err != nil:
		out.State, out.Message = NotKnown, "which domains the Jobs would get is not known: "+cli.Clean(err.Error())
	case placed == nil || placed.Placement == nil:
		out.State, out.Message = NotKnown, "which domains the Jobs would get is not known"
		if placed != nil {
			out.Message += ": " + cli.Clean(placed.Message)
		}
	case placed.Reason != "":
		out.State = NoDomain
		out.Message = "there are not enough domains with room now, so that the Jobs would wait, or the scheduler would look for domains " +
			"(--placement-when-full of the controller): " + cli.Clean(placed.Message)
	default:
		out.State = Placed
		for i := range placed.Placement.ReplicatedJobs {
			rj := &placed.Placement.ReplicatedJobs[i]
			for index, job := range rj.Jobs {
				out.Jobs = append(out.Jobs, PlacedJob{Job: helper.JobName(js.Name, rj.Name, index), TopologyKey: rj.TopologyKey, Domain: job.Domain})
			}
		}
	}
}

// placeNow has the placer of the controller choose domains for a set that does not exist yet, with what the cluster has now. The sets are
// the sets that have domains already.
func placeNow(ctx context.Context, kube kubernetes.Interface, sets []*jobsetv1alpha2.JobSet,
	js *jobsetv1alpha2.JobSet) (placed *domains.Placed, err error) {
	unplaced := plan.Decide(plan.Observed{JobSet: js, Gates: gates.Gates{ExclusivePlacement: true}}).Asks.Unplaced
	if len(unplaced) == 0 {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, placeWithin)
	p := placer.New(placer.Config{
		Kube: kube, Clock: clock.RealClock{}, WhenFull: "affinity", Wake: func(cache.ObjectName) {}, Needed: func() bool { return true },
		Placed: func() ([]*jobsetv1alpha2.JobSet, error) { return sets, nil },
	})
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { stop(); <-done }()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		placed, err = p.Place(ctx, js, unplaced)
		return placed != nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("nodes and pods could not be read within %s", placeWithin)
	}
	return placed, err
}

// place implements cluster.
func (l *live) place(ctx context.Context, js *jobsetv1alpha2.JobSet) (*domains.Placed, error) {
	if err := readable(ctx, l.kube); err != nil {
		return nil, err
	}
	list, err := l.resource(cli.JobSet, cli.JobSet.GroupVersion, metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing jobsets: %w", err)
	}
	var sets []*jobsetv1alpha2.JobSet
	for i := range list.Items {
		other, err := read[jobsetv1alpha2.JobSet](cli.JobSet, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if other.Status.Placement != nil && other.Status.TerminalState == "" && other.DeletionTimestamp == nil {
			sets = append(sets, other)
		}
	}
	return placeNow(ctx, l.kube, sets, js)
}

// readable returns an error if what decides about domains may not be read, or is too much for a preview.
func readable(ctx context.Context, kube kubernetes.Interface) error {
	one, core := metav1.ListOptions{Limit: 1}, kube.CoreV1()
	nodes, err := core.Nodes().List(ctx, one)
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	pods, err := core.Pods(metav1.NamespaceAll).List(ctx, one)
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	if n, m := total(len(nodes.Items), nodes.RemainingItemCount), total(len(pods.Items), pods.RemainingItemCount); n > maxNodes ||
		m > maxPods {
		return fmt.Errorf("the cluster has %s and %s, and a preview reads at most %s and %s",
			cli.Count(n, "node"), cli.Count(m, "pod"), cli.Number(maxNodes), cli.Number(maxPods))
	}
	for what, list := range map[string]func() error{
		"daemonsets":      func() error { _, err := kube.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, one); return err },
		"limitranges":     func() error { _, err := core.LimitRanges(metav1.NamespaceAll).List(ctx, one); return err },
		"runtimeclasses":  func() error { _, err := kube.NodeV1().RuntimeClasses().List(ctx, one); return err },
		"priorityclasses": func() error { _, err := kube.SchedulingV1().PriorityClasses().List(ctx, one); return err },
	} {
		if err := list(); err != nil {
			return fmt.Errorf("listing %s: %w", what, err)
		}
	}
	return nil
}

// total is the number of objects of which a list has the first.
func total(listed int, remaining *int64) int { return listed + int(ptr.Deref(remaining, 0)) }

// lines are the Jobs with the domains that they would get.
func (out *Placement) lines(t cli.Terminal) []string {
	if out == nil || len(out.Jobs) == 0 {
		return nil
	}
	var rows [][]string
	for i, job := range out.Jobs {
		if i == shownJobs {
			rows = append(rows, []string{fmt.Sprintf("and %s; see -o json", cli.Count(len(out.Jobs)-i, "more Job"))})
			break
		}
		rows = append(rows, []string{job.Job, job.Domain, job.TopologyKey})
	}
	lines := append([]string{""}, indented([]cli.Column{{Title: "JOB"}, {Title: "DOMAIN"}, {Title: "LABEL OF DOMAINS", Drop: 1}}, rows, t)...)
	for _, line := range wrap("  ", "as the controller would place the Jobs now, unless its feature gate "+gate+" is off", t) {
		lines = append(lines, t.Paint(cli.Quiet, line))
	}
	return lines
}
