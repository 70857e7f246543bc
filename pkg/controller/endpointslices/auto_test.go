// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// many is the number of pods of sets that are large.
const many = 120

// The states that a set in the mode auto passes through.
var (
	starts   = []change{attempted(jobsetv1alpha2.ScopeJobSet, false), counted(0, 0, many)}
	startsUp = []change{attempted(jobsetv1alpha2.ScopeJobSet, false), counted(many-1, 0, many)}
	runs     = []change{attempted(jobsetv1alpha2.ScopeJobSet, true), counted(many, 0, many)}
	lacksOne = []change{attempted(jobsetv1alpha2.ScopeJobSet, true), counted(many-1, 0, many)}
	// restarts still has the counts of the attempt before.
	restarts = []change{attempted(jobsetv1alpha2.ScopeJobSet, true), attempted(jobsetv1alpha2.ScopeJobSet, false), counted(many, 0, many)}
	stops    = []change{suspended, attempted(jobsetv1alpha2.ScopeJobSet, true), counted(many, 0, many)}
	stopped  = []change{suspended, attempted(jobsetv1alpha2.ScopeJobSet, true), ended, counted(0, 0, 0)}
)

// becomes stores the state of the set js, and lets time pass.
func (r *rig) becomes(state ...change) {
	r.Helper()
	r.updateSet(newJobSet("js", "auto", many, state...), fmt.Sprint(r.version.Add(1)))
	r.pass(2 * time.Second)
}

// summary returns what was written since the last call, with take and leave for changes of the selector.
func (r *rig) summary() []string {
	all := []string{}
	for _, write := range r.writes() {
		switch {
		case strings.HasSuffix(write, patchLeave):
			write = "leave"
		case strings.Contains(write, "selector"):
			write = "take"
		}
		all = append(all, write)
	}
	return all
}

func (r *rig) wrote(when string, want ...string) {
	r.Helper()
	if diff := gocmp.Diff(append([]string{}, want...), r.summary()); diff != "" {
		r.Errorf("writes when %s (-want +got):\n%s", when, diff)
	}
}

// objectsOf returns the objects of a set with a Service and many pods.
func objectsOf(service *corev1.Service, started bool) []runtime.Object {
	all := []runtime.Object{service}
	for n := range many {
		all = append(all, podOf("js", n, started))
	}
	return all
}

// writeAllAsCluster has the cluster write all addresses.
func (r *rig) writeAllAsCluster() {
	r.Helper()
	var addresses []string
	for _, a := range r.listed() {
		addresses = append(addresses, a)
	}
	r.writeAsCluster(addresses...)
	r.kube.ClearActions()
	r.pass(time.Minute)
}

// TestAutoFromStartToRestart takes the Service of a large set while it starts and restarts, and gives it back when it runs. At rest
// nothing is written, listed or looked at, also while single pods fail.
func TestAutoFromStartToRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "auto", many)), objectsOf(newService("js"), false)...)
		r.wrote("there are no addresses")
		for n := range many {
			r.change(podOf("js", n, false).Name, start(n))
			synctest.Wait()
		}
		r.becomes(starts...)
		r.wrote("the set starts", fmt.Sprint("create ", many), "take")
		r.becomes(startsUp...)
		r.wrote("almost all Jobs are ready")
		r.becomes(runs...)
		r.wrote("the set runs", "leave")
		r.writeAllAsCluster()
		r.wrote("the cluster has all addresses", "delete")

		r.becomes(lacksOne...)
		r.change(podOf("js", 7, false).Name, start(many+7))
		r.becomes(runs...)
		r.pass(time.Hour)
		for _, action := range r.kube.Actions() {
			if action.GetVerb() != "watch" && action.GetResource().Resource != "pods" {
				t.Errorf("at rest: %s %s", action.GetVerb(), action.GetResource().Resource)
			}
		}
		r.kube.ClearActions()

		r.becomes(restarts...)
		r.wrote("the set restarts", fmt.Sprint("create ", many), "take")
		r.change(podOf("js", 3, false).Name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		r.pass(2 * time.Second)
		r.wrote("a pod fails during the restart", fmt.Sprint("update ", many-1))
		r.becomes(runs...)
		r.wrote("the set runs again", "leave")
		if event := r.event(); event != "" {
			t.Errorf("event %q", event)
		}
	})
}

// TestAutoSuspension takes the Service while a set is being suspended, and before a set that is resumed has addresses.
func TestAutoSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "auto", many, runs...)), objectsOf(newService("js"), true)...)
		r.wrote("the set runs")
		r.becomes(stops...)
		r.wrote("the set stops", fmt.Sprint("create ", many), "take")
		for n := range many {
			if err := r.kube.CoreV1().Pods("ns").Delete(t.Context(), podOf("js", n, true).Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		r.pass(2 * time.Second)
		r.wrote("pods are gone", "update 0")
		r.becomes(stopped...)
		r.pass(10 * time.Second)
		r.wrote("the set has stopped", "leave", "delete")
		r.becomes(attempted(jobsetv1alpha2.ScopeJobSet, true), ended, counted(0, 0, 0))
		r.wrote("the set is resumed", "take")
		r.create(podOf("js", 0, true))
		r.pass(time.Second)
		r.wrote("the first pod has an address", "create 1")
	})
}

// TestAutoOfAnEarlierController keeps the Service of a set that is not complete yet, and gives back that of one at rest.
func TestAutoOfAnEarlierController(t *testing.T) {
	for name, tc := range map[string]struct {
		// mode is the flag, and annotation the mode of the set.
		mode, annotation string
		state            []change
		want             []string
	}{
		"a start":                              {annotation: "auto", state: starts, want: []string{fmt.Sprint("create ", many)}},
		"the end of a start":                   {annotation: "auto", state: lacksOne, want: []string{fmt.Sprint("create ", many)}},
		"at rest":                              {annotation: "auto", state: runs, want: []string{"leave"}},
		"a start, by the flag":                 {mode: "auto", state: starts, want: []string{fmt.Sprint("create ", many)}},
		"at rest, by the flag":                 {mode: "auto", state: runs, want: []string{"leave"}},
		"a start, with a flag for the cluster": {mode: "cluster", state: starts, want: []string{"leave"}},
		"at rest, with a flag for us":          {mode: "controller", state: runs, want: []string{fmt.Sprint("create ", many)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := newJobSet("js", tc.annotation, many, tc.state...)
				r := newRig(t, func(c *Config) { c.Mode = cmp.Or(tc.mode, c.Mode) }, one(js), objectsOf(newService("js", taken), true)...)
				r.pass(time.Minute)
				r.wrote("the controller has started", tc.want...)
			})
		})
	}
}

// TestAutoIsPrepared watches pods and looks the canary record up before a large set needs that.
func TestAutoIsPrepared(t *testing.T) {
	for name, tc := range map[string]struct {
		mode string
		sets []*jobsetv1alpha2.JobSet
		want bool
	}{
		"a flag":                      {mode: "auto"},
		"a flag and a small set":      {mode: "auto", sets: one(newJobSet("js", "", 1))},
		"a flag and a large set":      {mode: "auto", sets: one(newJobSet("js", "", many, runs...)), want: true},
		"a large set at rest":         {mode: "cluster", sets: one(newJobSet("js", "auto", many, runs...)), want: true},
		"a large set that has failed": {mode: "cluster", sets: one(newJobSet("js", "auto", many, append([]change{failed}, stopped...)...))},
		"a small set":                 {mode: "cluster", sets: one(newJobSet("js", "auto", 1))},
		"a large set of the cluster":  {mode: "cluster", sets: one(newJobSet("js", "cluster", many, starts...))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				canary := &Canary{Namespace: "system", Resolver: resolver(nil)}
				r := newRig(t, func(c *Config) { c.Canary, c.Mode = canary, tc.mode }, tc.sets)
				r.pass(10 * time.Minute)
				if got := r.c.demand.Current() != nil; got != tc.want {
					t.Errorf("pods are watched: %t, want %t", got, tc.want)
				}
				if _, reason, _ := canary.Resolves(); (reason != "") != tc.want {
					t.Errorf("the canary record was looked up: %t, want %t", reason != "", tc.want)
				}
			})
		})
	}
}

// TestAutoWaitsForNothing has no change of a pod wait while the cluster writes: delays are measured from the first change on that waits.
func TestAutoWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "auto", many, runs...)), objectsOf(newService("js"), true)...)
		r.change(podOf("js", 7, false).Name, start(many+7))
		r.pass(time.Second)
		paces := r.c.demand.Current().paces
		paces.change(cache.NewObjectName("ns", "js"), func(of *pace) {
			if !of.added.IsZero() || !of.outdated.IsZero() {
				t.Errorf("changes wait since %s and %s", of.added, of.outdated)
			}
		})
	})
}
