// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

func TestWatchersWatchWhatTenantsDo(t *testing.T) {
	namespaces := make([]string, 40)
	for i := range namespaces {
		namespaces[i] = "bench-" + string(rune('a'+i))
	}
	kinds := map[string]int{}
	for i := range 200 {
		namespace, options := watchedBy(i, namespaces)
		switch {
		case namespace != "" && options.LabelSelector == "":
			kinds["one namespace"]++
		case namespace == "" && options.LabelSelector != "":
			kinds["one tenant"]++
		case namespace == "":
			kinds["all"]++
		}
	}
	if d := cmp.Diff(map[string]int{"all": 20, "one namespace": 100, "one tenant": 80}, kinds); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	_, options := watchedBy(36, namespaces)
	if want := tenantKey + "=3"; options.LabelSelector != want {
		t.Errorf("selector %s, want %s", options.LabelSelector, want)
	}
}

func TestNamesOfTenantsSetsAreUnique(t *testing.T) {
	tenants := &tenants{space: &space{runner: &runner{Env: &Env{Sizes: Sizes{ManySets: 3}}}}, namespaces: []string{"x", "y"}}
	names, namespaces := map[string]bool{}, map[string]int{}
	for i := range tenants.count() {
		s, name := tenants.at(i)
		names[name] = true
		namespaces[s.name]++
	}
	if d := cmp.Diff(map[string]int{"x": 3, "y": 3}, namespaces); d != "" || len(names) != 6 {
		t.Errorf("%d names; sets of each namespace (-want +got):\n%s", len(names), d)
	}
}

func TestMemoryBeforeSetsIsThatOfTheFirstRun(t *testing.T) {
	phase := &report.Phase{}
	for _, mebibytes := range []int64{400, 900} {
		addFirst(phase, map[string]int64{"kube-apiserver": mebibytes << 20, "etcd": mebibytes << 19, "jobset-controller": 1 << 20})
	}
	got := map[string][]float64{}
	for _, f := range phase.Figures {
		got[f.Name] = f.Values
	}
	want := map[string][]float64{"memory of kube-apiserver": {400, 400}, "memory of etcd": {200, 200}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDeliveriesAreCountedFromTheRequest(t *testing.T) {
	d := &deliveries{}
	d.send("a")
	events := []watch.Event{
		{Type: watch.Added, Object: &jobsetv1alpha2.JobSet{ObjectMeta: objectMeta("a", "ns")}},
		{Type: watch.Modified, Object: &jobsetv1alpha2.JobSet{ObjectMeta: objectMeta("a", "ns")}},
		{Type: watch.Added, Object: &jobsetv1alpha2.JobSet{ObjectMeta: objectMeta("of-somebody-else", "ns")}},
		{Type: watch.Error, Object: &metav1.Status{}},
	}
	for range 2 {
		d.begin()
	}
	source := watch.NewFakeWithChanSize(len(events), false)
	for _, event := range events {
		source.Action(event.Type, event.Object)
	}
	source.Stop() // what was sent is still received
	d.receive(source)
	if len(d.delays) != 1 || d.delays[0] < 0 || d.delays[0] > millis(time.Minute) {
		t.Errorf("delays %v, want that of one set", d.delays)
	}
	phase := &report.Phase{}
	d.addTo(phase, 1)
	if events, again := phase.Last("events delivered"), phase.Last("watches begun again"); events != 4 || again != 1 {
		t.Errorf("%v events, %v watches begun again; want 4 and 1", events, again)
	}
}

func TestWritesOfTheControllerAreAdded(t *testing.T) {
	phase := &report.Phase{}
	addControllerWrites(phase)
	if len(phase.Figures) != 0 {
		t.Error("a phase that was left out has figures")
	}
	phase.Add("wall", report.UnitSeconds, 1)
	for call, n := range map[string]float64{
		"client/jobset-controller/create jobs": 2, "client/jobset-controller/patch jobs": 3, "client/jobset-controller/list jobs": 5, "calls/kube-apiserver/POST jobs": 7,
		"client/jobset-controller/create tokenreviews": 11, "client/jobset-controller/create subjectaccessreviews": 13,
	} {
		phase.Add(call, report.UnitCalls, n)
	}
	addControllerWrites(phase)
	if got := phase.Last(report.ControllerWrites); got != 5 {
		t.Errorf("%v writes, want 5", got)
	}
}
