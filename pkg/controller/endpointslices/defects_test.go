// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 3_000

type defect = simulation.Defect[mutant]

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	histories.ShowDefects(t, enough, map[string]defect{
		// What was found: slices whose update was refused kept the addresses of pods that had ended, and a fresh process gave
		// Services back at the first failed look-up.
		"refusals that pass for failures":            {Mutant: mutant{deaf: true}, Rules: []string{ruleStale}, First: 361},
		"denied requests made again too early":       {Mutant: mutant{deaf: true}, Rules: []string{simulation.RuleDeniedChild}},
		"slices that stay when a Service is left":    {Mutant: mutant{lost: "delete endpointslice"}, Rules: []string{ruleStale, ruleIs, ruleRest}},
		"a first failure that passes for lasting":    {Mutant: mutant{nervous: true}, Rules: []string{ruleDNS}},
		"a first refusal that passes for lasting":    {Mutant: mutant{hasty: true}, Rules: []string{ruleDNS}, First: 132},
		"no answer that passes for an answer":        {Mutant: mutant{presuming: true}, Rules: []string{ruleDNS}, First: 221},
		"failed passes that are not tried again":     {Mutant: mutant{careless: true}, Rules: []string{ruleStale, ruleMissing, ruleIs}, First: 172},
		"a controller that does not wait":            {Mutant: mutant{forgetful: true}, Rules: []string{ruleOnce}},
		"Services that are overwritten":              {Mutant: mutant{overwriting: true}, Rules: []string{ruleSelector}, First: 434},
		"a refusal that is not reported":             {Mutant: mutant{silent: true}, Rules: []string{ruleVisible}},
		"slices that are deleted too early":          {Mutant: mutant{blind: true}, Rules: []string{ruleGap}, First: 1_338},
		"a set that is looked at every second":       {Mutant: mutant{due: everySecond}, Rules: []string{simulation.RulePasses}},
		"what is refused is never tried again":       {Mutant: mutant{due: never}, Rules: []string{ruleIs, ruleStale, ruleMissing}},
		"a Service that is taken without slices":     {Mutant: mutant{lost: "create endpointslice"}, Rules: []string{ruleGap, ruleMissing}},
		"slices that do not change":                  {Mutant: mutant{lost: "update endpointslice"}, Rules: []string{ruleStale, ruleMissing, ruleIs, ruleRest}},
		"a Service that is never given back":         {Mutant: mutant{lost: "patch service"}, Rules: []string{ruleIs, ruleMissing, ruleRest}},
		"pods that end and stay":                     {Mutant: mutant{need: of("pods", withoutEnd)}, Rules: []string{ruleStale}},
		"pods that vanish unnoticed":                 {Mutant: mutant{handler: without("pods", "delete")}, Rules: []string{ruleStale}},
		"pods whose changes go unnoticed":            {Mutant: mutant{handler: without("pods", "update")}, Rules: []string{ruleStale, ruleMissing}},
		"readiness that nobody sees":                 {Mutant: mutant{need: of("pods", withoutReadiness)}, Rules: []string{ruleMissing}},
		"foreign slices that pass as our own":        {Mutant: mutant{need: of("endpointslices", adopted)}, Rules: []string{simulation.RuleOthers}},
		"a foreign Service that passes as our own":   {Mutant: mutant{need: of("services", withOwner)}, Rules: []string{ruleIs, ruleOwned}, First: 805},
		"a shared Service that passes for unshared":  {Mutant: mutant{need: of("jobsets", unshared)}, Rules: []string{ruleIs}},
		"large sets that never are at rest":          {Mutant: mutant{need: of("jobsets", neverUp)}, Rules: []string{ruleAtRest, ruleIs}},
		"large sets whose progress goes unnoticed":   {Mutant: mutant{handler: without("jobsets", "update")}, Rules: []string{ruleAtRest}},
		"a Service given back before all is at rest": {Mutant: mutant{need: of("jobsets", almostUp)}, Rules: []string{ruleDNS}},
		"a Service taken for a single pod":           {Mutant: mutant{need: of("jobsets", hardlyUp)}, Rules: []string{ruleAtRest}},
		"changes of slices that go unnoticed":        {Mutant: mutant{handler: without("endpointslices", "update", "delete")}, Rules: []string{ruleMissing}},
	})
}

func everySecond(due queue.Due) queue.Due {
	due.Deadline = time.Second
	return due
}

func never(due queue.Due) queue.Due {
	due.Deadline = 0
	return due
}

// of changes what is cached of one resource.
func of(resource string, change func(*informers.Need)) func(*informers.Need) {
	return func(need *informers.Need) {
		if need.Resource.Resource == resource {
			change(need)
		}
	}
}

// altered has a cache keep something else than what is.
func altered[T any](change func(T)) func(*informers.Need) {
	return func(need *informers.Need) {
		transform := need.Transform
		need.Transform = func(obj any) (any, error) {
			if object, ok := obj.(T); ok {
				change(object)
			}
			return transform(obj)
		}
	}
}

var (
	withoutEnd = altered(func(pod *corev1.Pod) {
		if hasEnded(pod) {
			pod.Status.Phase = corev1.PodRunning
		}
	})
	withoutReadiness = altered(func(pod *corev1.Pod) { pod.Status.Conditions = nil })
	adopted          = altered(func(slice *discoveryv1.EndpointSlice) {
		slice.Labels[discoveryv1.LabelManagedBy] = "controller.jobset-apiserver.io"
	})
	neverUp = altered(func(js *jobsetv1alpha2.JobSet) {
		for i := range js.Status.Attempts {
			js.Status.Attempts[i].ReadyTime = nil
		}
	})
	almostUp = altered(func(js *jobsetv1alpha2.JobSet) {
		if ready(js) > largeJobs*3/4 {
			count(js, largeJobs, active(js))
		}
	})
	hardlyUp = altered(func(js *jobsetv1alpha2.JobSet) {
		if ready(js) < largeJobs {
			count(js, 0, active(js))
		}
	})
	withOwner = altered(func(svc *corev1.Service) {
		if len(svc.OwnerReferences) > 0 {
			svc.OwnerReferences = svc.OwnerReferences[:1]
		}
		delete(svc.Spec.Selector, "role")
	})
)

func unshared(need *informers.Need) {
	indexers := cache.Indexers{}
	for name := range need.Indexers {
		indexers[name] = func(any) ([]string, error) { return nil, nil }
	}
	need.Indexers = indexers
}

// without has handlers of a resource miss some changes.
func without(resource string, missed ...string) func(string, cache.ResourceEventHandler) cache.ResourceEventHandler {
	return func(of string, handler cache.ResourceEventHandler) cache.ResourceEventHandler {
		if of != resource {
			return handler
		}
		funcs := cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { handler.OnAdd(obj, false) }, UpdateFunc: handler.OnUpdate, DeleteFunc: handler.OnDelete,
		}
		for _, what := range missed {
			switch what {
			case "update":
				funcs.UpdateFunc = nil
			case "delete":
				funcs.DeleteFunc = nil
			}
		}
		return funcs
	}
}
