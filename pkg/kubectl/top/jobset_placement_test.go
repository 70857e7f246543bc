// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

const rack = "example.com/rack"

// placedSet has two Jobs with domains, and two for which the scheduler chooses, one of which has a node.
func placedSet() (*snapshot.Set, map[string]string) {
	s := newSet(4, builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 4, 2), func(js *jobsetv1alpha2.JobSet) {
		js.Status.Placement = &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{{
			Name: "workers", TopologyKey: rack, Jobs: []jobsetv1alpha2.JobPlacement{{Domain: "rack-07", Nodes: 2}, {Domain: "rack-11", Nodes: 3}, {}, {}},
		}}}
	})
	s.Pods[3].Status.Conditions = nil
	for _, pod := range s.Pods[7:] {
		pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	}
	return s, map[string]string{"node-00": "rack-11", "node-01": "rack-07", "node-02": "rack-07", "node-03": "rack-11"}
}

func TestDomainsOfJobs(t *testing.T) {
	s, domains := placedSet()
	for _, width := range []int{0, 60, 100, 200} {
		got := New(s, rack, domains).Lines(cli.Terminal{Width: width}, false)
		golden.Compare(t, fmt.Sprintf("placement-%d.txt", width), strings.Join(got, "\n")+"\n")
	}
	if got := (jobs{s}).topology(); got != rack {
		t.Errorf("the label of the domains is %q", got)
	}
}

func TestDomainsOfJobsForScripts(t *testing.T) {
	s, domains := placedSet()
	content, err := json.Marshal(New(s, rack, domains).JobDomains)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`[{"job":"train-workers-3","replicatedJob":"workers","topologyKey":"example.com/rack","byScheduler":true,"pods":2,"ready":0}`,
		`{"job":"train-workers-1","replicatedJob":"workers","topologyKey":"example.com/rack","domain":"rack-11","nodes":3,"pods":2,"ready":1}`,
		`{"job":"train-workers-0","replicatedJob":"workers","topologyKey":"example.com/rack","domain":"rack-07","nodes":2,"pods":2,"ready":2}`,
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%s is missing in:\n%s", want, content)
		}
	}
}

func TestDomainsThatAreNotKnown(t *testing.T) {
	s, _ := placedSet()
	if got := text(New(s, "zone", nil), false); !strings.Contains(got, "train-workers-2 (chosen by the scheduler) 2/2") {
		t.Errorf("the Job of which the domain is not known is not shown so:\n%s", got)
	}
	s.JobSet.Status.Restarts = 1
	if got := New(s, rack, nil).JobDomains; got != nil {
		t.Errorf("the domains of the attempt before are shown: %+v", got)
	}
}

func TestManyDomainsAreSummarized(t *testing.T) {
	s := newSet(1, builders.WithJobs("w", 30, 1), func(js *jobsetv1alpha2.JobSet) {
		js.Status.Placement = &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{{Name: "w", TopologyKey: rack, Jobs: make([]jobsetv1alpha2.JobPlacement, 30)}}}
	})
	if got := text(New(s, rack, nil), false); !strings.Contains(got, "\nand 10 more Jobs") {
		t.Errorf("not all Jobs should be shown:\n%s", got)
	}
	if got := text(New(s, rack, nil), true); !strings.Contains(got, "\ntrain-w-29 ") {
		t.Errorf("all Jobs should be shown:\n%s", got)
	}
}

func TestSetThatWaitsForDomains(t *testing.T) {
	s := newSet(1, builders.WithJobs("w", 1, 1))
	s.Jobs, s.Pods = nil, nil
	meta.SetStatusCondition(&s.JobSet.Status.Conditions, metav1.Condition{
		Type: jobsetv1alpha2.PlacementPending, Status: metav1.ConditionTrue, Reason: "NoDomain", Message: "of 2 domains, 2 are taken\nby jobs",
	})
	if got, want := text(New(s, "zone", nil), false), "Domains waits for domains: of 2 domains, 2 are taken by jobs"; !strings.Contains(got, want) {
		t.Errorf("%q is missing in:\n%s", want, got)
	}
}
