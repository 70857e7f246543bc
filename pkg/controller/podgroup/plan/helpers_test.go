// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// now is the time of all snapshots.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// job is an owner of pods.
var job = Owner{Kind: KindJob, Name: "job", UID: "job"}

// pod returns a pod that runs.
func pod(name string, change ...func(*Pod)) *Pod {
	p := &Pod{Name: name, UID: types.UID("uid-" + name), Phase: Running, Created: now.Unix() - 60}
	for _, c := range change {
		c(p)
	}
	return p
}

// pods returns so many pods that run.
func pods(n int, change ...func(*Pod)) (all []*Pod) {
	for i := range n {
		all = append(all, pod(fmt.Sprintf("p%02d", i), change...))
	}
	return all
}

func in(phase Phase) func(*Pod)      { return func(p *Pod) { p.Phase = phase } }
func ownedBy(owner Owner) func(*Pod) { return func(p *Pod) { p.Owner = owner } }
func labeled(p *Pod)                 { p.Labeled = true }
func terminating(p *Pod)             { p.Terminating = true }
func ready(p *Pod)                   { p.Ready = true }
func states(size string) func(*Pod)  { return func(p *Pod) { p.SizeLabel = size } }

func created(ago int64) func(*Pod) { return func(p *Pod) { p.Created = now.Unix() - ago } }
func ended(ago int64) func(*Pod) {
	return func(p *Pod) { p.Phase, p.Ended = Failed, now.Unix()-ago }
}

// observed is a group whose stabilization window is over.
func observed(pods ...*Pod) Observed {
	return Observed{Prefix: Prefixes[0], Pods: pods, ShowStatus: true, Now: now, LastNew: now.Add(-time.Minute)}
}

func (o Observed) owned(sizes map[Owner]OwnerSize) Observed {
	o.Owners = sizes
	return o
}

func (o Observed) grouped(group *batchv1alpha1.PodReadinessGroup) Observed {
	o.Group = group
	return o
}

func jobOf(n int32) map[Owner]OwnerSize { return map[Owner]OwnerSize{job: {Root: job.UID, Pods: n}} }

// group returns a PodReadinessGroup; without minMember if that is 0.
func group(minMember int32) *batchv1alpha1.PodReadinessGroup {
	g := &batchv1alpha1.PodReadinessGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", Generation: 1}}
	if minMember > 0 {
		g.Spec.MinMember = ptr.To(minMember)
	}
	return g
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
