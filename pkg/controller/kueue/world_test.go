// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

var workloads = kueue.GroupVersion.WithResource("workloads")

const namespace = "ns"

// sequences are the names of the sequences that Workloads belong to. The UID of one is its name and a number.
var sequences = []string{"a", "b"}

// mutant is how the watch behaves: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	// transport changes what is asked of the server, and what it answers.
	transport func(e *env, next http.RoundTripper) http.RoundTripper
	// availability and holding change what the watch says.
	availability func(e *env, a kueue.Availability, why string) (kueue.Availability, string)
	holding      func(e *env, key cache.ObjectName, found []*plan.Workload, known bool) ([]*plan.Workload, bool)
	of           func(e *env, found *plan.Workload) *plan.Workload
	// deaf and indifferent ones do not hear of Workloads that changed, and of another availability.
	deaf        func(w *plan.Workload) bool
	indifferent bool
	// eager ones want to know before anybody asks, and undead ones do not end.
	eager, undead bool
}

// env is everything in one history.
type env struct {
	*simulation.World
	mutant
	server  *memory.Server
	weather *memory.Weather
	faults  faults
	began   time.Time
	process *process
	truth   truth
	// served means that the API is served, and turned is since when the same can be known of that.
	served bool
	turned time.Time

	mu sync.Mutex
	// requests are all of the present process.
	requests []memory.Request
}

// process is a run of the watch.
type process struct {
	*kueue.Watch
	began  time.Time
	wanted bool
	cancel context.CancelFunc
	ended  chan struct{}
	// said is what the watch has said when it last reported a change, and dirty are the sequences that have been reported since.
	mu    sync.Mutex
	dirty map[string]bool
	said  map[string]string
	// noted is how many requests are in the trace.
	noted int
}

// quiet is the context of histories, which log nothing.
var quiet = klog.NewContext(context.Background(), logr.Discard())

// everything is what is dirty when the availability has changed.
const everything = "*"

func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x6b75657565
	d := simulation.NewDice(seed, stream)
	e := &env{World: simulation.NewWorld(d, trace), mutant: m, server: memory.NewServer(), weather: memory.NewWeather(seed), began: time.Now()}
	e.faults = randomFaults(d)
	e.server.SetStreaming(d.Percent(70))
	e.server.Trouble = e.weather.Trouble
	e.server.Seen = e.sees
	e.truth.note(e)
	if d.Percent(70) {
		e.install()
	}
	e.start()
	return e
}

func (e *env) sees(r memory.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, r)
}

// start starts a process.
func (e *env) start() {
	config := e.server.ClientConfig(func(next http.RoundTripper) http.RoundTripper {
		if e.transport != nil {
			return e.transport(e, next)
		}
		return next
	})
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	p := &process{began: time.Now(), dirty: map[string]bool{}, said: map[string]string{}, ended: make(chan struct{})}
	p.Watch = kueue.NewWatch(kueue.Config{
		Kube: kube, Dynamic: objects, Clock: clock.RealClock{},
		Changed: func(w *plan.Workload) {
			if e.deaf == nil || !e.deaf(w) {
				p.soil(nameOf(w))
			}
		},
		AvailabilityChanged: func() {
			if !e.indifferent {
				p.soil(everything)
			}
		},
	})
	e.mu.Lock()
	e.requests = nil
	e.mu.Unlock()
	ctx, cancel := context.WithCancel(quiet)
	p.cancel = cancel
	e.process = p
	go func() { defer close(p.ended); p.Run(ctx) }()
	synctest.Wait()
	e.Note("process starts")
	if e.eager {
		p.Want()
	}
}

// nameOf returns the name of the sequence that a Workload belongs to.
func nameOf(w *plan.Workload) string {
	if owner := w.Owner(); owner != nil {
		return owner.Name
	}
	return ""
}

func (p *process) soil(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty[name] = true
}

// stop ends the process, and makes sure that nothing of it is left.
func (e *env) stop() {
	p := e.process
	if !e.undead {
		p.cancel()
		<-p.ended
	}
	e.pass(2 * time.Second) // a question to discovery that is under way ends
	e.mu.Lock()
	before := len(e.requests)
	e.mu.Unlock()
	e.pass(5 * time.Minute)
	e.mu.Lock()
	more := len(e.requests) - before
	e.mu.Unlock()
	watches := e.server.Watches(workloads.GroupResource())
	p.cancel()
	<-p.ended
	e.pass(time.Second)
	if more > 0 || watches > 0 {
		e.Fail(ruleEnd, "%d requests were sent after the end, %d watches are left", more, watches)
	}
}

// pass lets time pass for everybody.
func (e *env) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	e.World.Pass(time.Since(e.began) - e.Since(simulation.Beginning))
	if e.Traced() {
		e.noteRequests()
	}
}

// noteRequests adds those since the last time to the trace.
func (e *env) noteRequests() {
	sent := e.sent()
	for _, r := range sent[min(e.process.noted, len(sent)):] {
		e.Note("  sent %.3fs ago: %s %s: %d", time.Since(r.At).Seconds(), r.Verb, r.Resource.Resource, r.Code)
	}
	e.process.noted = len(sent)
}

// install serves the API.
func (e *env) install() {
	e.served, e.turned = true, time.Now()
	e.server.Serve(kueue.GroupVersion, map[string]string{"workloads": "Workload", "resourceflavors": "ResourceFlavor"})
	e.Note("Kueue is installed")
	e.truth.note(e)
}

// remove ends serving it. Its objects may come back with it, as when an instance of the main API that does not know them yet answers.
func (e *env) remove() {
	e.served, e.turned = false, time.Now()
	e.server.Withdraw(kueue.GroupVersion)
	e.Note("Kueue is removed")
	if e.Dice.Percent(50) {
		for _, w := range e.server.List(workloads.GroupResource()) {
			e.server.Change(workloads.GroupResource(), w, func(next *unstructured.Unstructured) { next.SetFinalizers(nil) })
			e.server.Delete(workloads.GroupResource(), w)
		}
	}
	e.truth.note(e)
}

// create creates a Workload of a sequence.
func (e *env) create(name string) {
	sequence, incarnation := simulation.OneOf(e.Dice, sequences...), 1+e.Dice.IntN(2)
	owner := metav1.OwnerReference{
		APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: "SequentialJob", Name: sequence, UID: uidOf(sequence, incarnation), Controller: ptr.To(true),
	}
	if e.Dice.Percent(20) { // the Workload of a child, or of a Job without a sequence
		owner.APIVersion, owner.Kind = "batch/v1", "Job"
	}
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queueName": "q", "podSets": []any{}}}}
	w.SetNamespace(namespace)
	w.SetName(name)
	w.SetOwnerReferences([]metav1.OwnerReference{owner})
	if e.Dice.Percent(50) {
		w.SetFinalizers([]string{plan.InUseFinalizer})
	}
	e.server.Create(workloads.GroupResource(), w)
	e.Note("Workload %s of %s %s is created", name, owner.Kind, owner.UID)
	e.Seen["Workloads created"]++
}

func uidOf(sequence string, incarnation int) types.UID {
	return types.UID(fmt.Sprintf("%s-%d", sequence, incarnation))
}
