// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

const (
	namespace = "ns"
	label     = "set"
)

var (
	newest, oldest = schema.GroupVersion{Group: "example.com", Version: "v2"}, schema.GroupVersion{Group: "example.com", Version: "v1"}
	versions       = []schema.GroupVersion{newest, oldest}
	podGroups      = schema.GroupResource{Group: "example.com", Resource: "podgroups"}
	workloads      = schema.GroupResource{Group: "example.com", Resource: "workloads"}
	resources      = []schema.GroupResource{podGroups, workloads}
	// all is what a version must have, and some is too little.
	all, some = map[string]string{"podgroups": "PodGroup", "workloads": "Workload"}, map[string]string{"podgroups": "PodGroup"}
	owners    = []types.UID{"a", "b"}
	// quiet is the context of histories, which log nothing.
	quiet = klog.NewContext(context.Background(), logr.Discard())
)

// mutant is how the watch behaves: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	// transport changes what is asked of the server, and what it answers.
	transport func(e *env, next http.RoundTripper) http.RoundTripper
	// ask and of change what the watch says.
	ask func(e *env, s gang.State) gang.State
	of  func(e *env, found []*unstructured.Unstructured) []*unstructured.Unstructured
	// deaf and indifferent ones do not hear of objects that changed, and of another state.
	deaf        func(object metav1.Object) bool
	indifferent bool
	// eager ones ask before anybody needs objects, greedy ones need them for ever, and undead ones do not end.
	eager, greedy, undead bool
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
	truth   []state
	// turned is since when the same can be known of what is served.
	turned time.Time

	mu sync.Mutex
	// requests are all of the present process, and answers what discovery said of each version.
	requests []memory.Request
	answers  map[schema.GroupVersion][]answer
}

// process is a run of the watch.
type process struct {
	*gang.Watch
	cancel context.CancelFunc
	ended  chan struct{}
	needed atomic.Bool
	// unneeded is since when no caller needs anything, and asked is when a caller asked first.
	unneeded, asked time.Time
	// renewed means that an earlier need has ended.
	renewed bool
	noted   int
	// used is the version that was in use last, and seen is when that was seen.
	used schema.GroupVersion
	seen time.Time

	mu    sync.Mutex
	dirty map[types.UID]bool
	said  map[types.UID]string
}

// answer is what discovery said of a version.
type answer struct {
	at     time.Time
	served bool
}

// everything is what is dirty when the state has changed.
const everything = types.UID("*")

// state is what the server holds from a time on.
type state struct {
	at    time.Time
	views map[view]string
}

// view is what an owner has of a resource. Watches of different resources lag apart.
type view struct {
	owner    types.UID
	resource schema.GroupResource
}

var views = []view{{"a", podGroups}, {"a", workloads}, {"b", podGroups}, {"b", workloads}}

func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x67616e67
	d := simulation.NewDice(seed, stream)
	e := &env{World: simulation.NewWorld(d, trace), mutant: m, server: memory.NewServer(), weather: memory.NewWeather(seed), began: time.Now()}
	e.faults = randomFaults(d)
	e.server.SetStreaming(d.Percent(70))
	e.server.Trouble = e.weather.Trouble
	e.server.Seen = e.sees
	e.note()
	for _, version := range versions {
		if d.Percent(50) {
			e.server.Serve(version, all)
		}
	}
	e.start()
	return e
}

func (e *env) sees(r memory.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, r)
	if r.Verb == "discovery" && (r.Code == http.StatusOK || r.Code == http.StatusNotFound) {
		version := r.Resource.GroupVersion()
		e.answers[version] = append(e.answers[version], answer{time.Now(), r.Code == http.StatusOK && e.serves(version)})
	}
}

// serves returns whether a version is served with all kinds.
func (e *env) serves(version schema.GroupVersion) bool {
	return e.server.Serves(version.WithResource("podgroups")) && e.server.Serves(version.WithResource("workloads"))
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
	p := &process{dirty: map[types.UID]bool{}, said: map[types.UID]string{}, ended: make(chan struct{}), unneeded: time.Now()}
	p.Watch = gang.NewWatch(gang.Config{
		Kube: kube, Dynamic: objects, Versions: versions, Kinds: []gang.Kind{gang.Workloads, gang.PodGroups}, Label: label,
		Needed: func() bool { return p.needed.Load() || e.greedy },
		Changed: func(object metav1.Object) {
			if e.deaf == nil || !e.deaf(object) {
				p.soil(ownerOf(object))
			}
		},
		Turned: func() {
			if !e.indifferent {
				p.soil(everything)
			}
		},
	})
	e.mu.Lock()
	e.requests, e.answers = nil, map[schema.GroupVersion][]answer{}
	e.mu.Unlock()
	ctx, cancel := context.WithCancel(quiet)
	p.cancel = cancel
	e.process = p
	go func() { defer close(p.ended); p.Run(ctx) }()
	synctest.Wait()
	e.Note("process starts")
	if e.eager {
		p.Ask()
	}
}

func ownerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return ""
}

func (p *process) soil(owner types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty[owner] = true
}

// stop ends the process, and makes sure that nothing of it is left.
func (e *env) stop() {
	p := e.process
	if !e.undead {
		p.cancel()
		<-p.ended
	}
	e.pass(2 * time.Second)
	before := len(e.sent())
	e.pass(5 * time.Minute)
	more, watches := len(e.sent())-before, e.watches()
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
		sent := e.sent()
		for _, r := range sent[min(e.process.noted, len(sent)):] {
			e.Note("  sent %.3fs ago: %s %s: %d", time.Since(r.At).Seconds(), r.Verb, r.Resource, r.Code)
		}
		e.process.noted = len(sent)
	}
}

// sent returns the requests of the present process.
func (e *env) sent() []memory.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests[:len(e.requests):len(e.requests)]
}

func (e *env) watches() (n int) {
	for _, resource := range resources {
		n += e.server.Watches(resource)
	}
	return n
}

// create creates an object of an owner.
func (e *env) create(resource schema.GroupResource, name string) {
	owner := simulation.OneOf(e.Dice, owners...)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetNamespace(namespace)
	object.SetName(name)
	if e.Dice.Percent(90) {
		object.SetLabels(map[string]string{label: "x"})
	}
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Set", Name: string(owner), UID: owner, Controller: ptr.To(true)}})
	e.server.Create(resource, object)
	e.Note("%s %s of %s is created", resource.Resource, name, owner)
}

// note notes the present state.
func (e *env) note() {
	s := state{at: time.Now(), views: map[view]string{}}
	for _, v := range views {
		var found []*unstructured.Unstructured
		for _, object := range e.server.List(v.resource) {
			if _, labeled := object.GetLabels()[label]; labeled && ownerOf(object) == v.owner {
				found = append(found, object)
			}
		}
		s.views[v] = describe(found)
	}
	e.truth = append(e.truth, s)
}

func describe(objects []*unstructured.Unstructured) string {
	var names []string
	for _, object := range objects {
		names = append(names, fmt.Sprintf("%s@%s", object.GetName(), object.GetResourceVersion()))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
