// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// placedSet has two Jobs with domains, one for which the scheduler chooses, and one that does not exist.
func placedSet() *snapshot.Set {
	s := newSet(builders.WithJobs("workers", 4, 2), func(js *jobsetv1alpha2.JobSet) {
		js.Status.Placement = &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{{
			Name: "workers", TopologyKey: "example.com/rack", Jobs: []jobsetv1alpha2.JobPlacement{{Domain: "rack-07", Nodes: 2}, {Domain: "rack-11", Nodes: 2}, {}, {Domain: "rack-12"}},
		}}}
	})
	for index := range 3 {
		addJob(s, "workers", index, 2)
	}
	unschedulable(s.Pods[2])
	return s
}

func TestDomains(t *testing.T) {
	s := placedSet()
	for _, width := range []int{0, 60, 100, 200} {
		golden.Compare(t, fmt.Sprintf("domains-%d.txt", width), strings.Join(New(s).Lines(cli.Terminal{Width: width}, now, false), "\n")+"\n")
	}
	content, err := json.Marshal(New(s))
	if err != nil {
		t.Fatal(err)
	}
	if want := `"domain":"rack-07","topologyKey":"example.com/rack"`; strings.Count(string(content), `"domain":`) != 3 || !strings.Contains(string(content), want) {
		t.Errorf("three Jobs should have domains, one of them %s:\n%s", want, content)
	}
}

func TestDomainsOfAnEarlierAttemptAreNotShown(t *testing.T) {
	s := placedSet()
	s.JobSet.Status.Restarts = 1
	if got := strings.Join(lines(s, true), "\n"); strings.Contains(got, "rack-") || strings.Contains(got, "DOMAIN") {
		t.Errorf("domains are shown:\n%s", got)
	}
}

func TestJobsThatWaitForDomains(t *testing.T) {
	s := newSet(builders.WithJobs("workers", 2, 2))
	meta.SetStatusCondition(&s.JobSet.Status.Conditions, metav1.Condition{Type: jobsetv1alpha2.PlacementPending, Status: metav1.ConditionTrue, Reason: "NoDomain"})
	if got, want := strings.Join(lines(s, false), "\n"), "waits for a topology domain, see `kubectl jobset why train`"; !strings.Contains(got, want) {
		t.Errorf("%q is missing in:\n%s", want, got)
	}
}
