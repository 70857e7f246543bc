// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

const namespace, name = "ns", "etl"

var (
	sequences = batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs").GroupResource()
	jobs      = batchv1.SchemeGroupVersion.WithResource("jobs").GroupResource()
	workloads = kueue.GroupVersion.WithResource("workloads").GroupResource()
	flavors   = kueue.GroupVersion.WithResource("resourceflavors").GroupResource()
	// kinds are the kinds of Kueue.
	kinds = map[string]string{"workloads": "Workload", "resourceflavors": "ResourceFlavor", "workloadpriorityclasses": "WorkloadPriorityClass"}
	// quiet is the context of histories, which log nothing.
	quiet = klog.NewContext(context.Background(), logr.Discard())
)

// mutant is a controller with a defect: what it sends, or is answered, is changed.
type mutant struct {
	transport func(e *env, next http.RoundTripper) http.RoundTripper
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
	hardships
	// noted is how many writes are in the trace, and created is how many sequences there were.
	noted, created int
	// typed are the objects that observe has converted, by their versions.
	typed map[string]any

	mu sync.Mutex
	// requests are all, and facts what rules use of the present state.
	requests []memory.Request
	facts    facts
	broken   []string
	// changes are how many changes of Workloads the controllers have made. They write while the history goes on, and so may not count in Seen.
	changes int
}

// process is a run of the controller.
type process struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x686f6c64
	d := simulation.NewDice(seed, stream)
	e := &env{World: simulation.NewWorld(d, trace), mutant: m, server: memory.NewServer(), weather: memory.NewWeather(seed), began: time.Now(), typed: map[string]any{}}
	e.apartWrites = map[schema.GroupResource][]time.Time{}
	e.faults = randomFaults(d)
	e.server.Trouble = e.trouble
	e.server.Seen = func(r memory.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.requests = append(e.requests, r)
		e.checkPause(r)
	}
	e.server.Written = e.written
	e.server.Serve(batchv1alpha1.SchemeGroupVersion, map[string]string{"sequentialjobs": "SequentialJob"})
	e.server.Serve(jobsetv1alpha2.SchemeGroupVersion, map[string]string{"jobsets": "JobSet"})
	e.server.Serve(batchv1.SchemeGroupVersion, map[string]string{"jobs": "Job"})
	e.server.Serve(corev1.SchemeGroupVersion, map[string]string{"pods": "Pod", "namespaces": "Namespace", "configmaps": "ConfigMap", "events": "Event"})
	e.server.Serve(kueue.GroupVersion, kinds)
	ns := &unstructured.Unstructured{Object: map[string]any{}}
	ns.SetName(namespace)
	e.server.Create(corev1.Resource("namespaces"), ns)
	e.createFlavor()
	e.createSequence()
	e.start()
	return e
}

func (e *env) createFlavor() {
	flavor := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeLabels": map[string]any{"pool": "spot"}}}}
	flavor.SetName("spot")
	e.server.Create(flavors, flavor)
}

// createSequence lets a user create the sequence.
func (e *env) createSequence() {
	sj := &batchv1alpha1.SequentialJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, Labels: map[string]string{plan.QueueKey: "q"}},
		Spec:       batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}, {Name: "b", Image: "b"}}},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sj)
	if err != nil {
		panic(err)
	}
	e.created++
	e.server.Create(sequences, &unstructured.Unstructured{Object: object})
	e.Note("the sequence is created")
}

// start starts a controller. It runs once its caches are filled.
func (e *env) start() {
	config := e.server.ClientConfig(func(next http.RoundTripper) http.RoundTripper {
		if e.starts++; e.transport != nil {
			return e.transport(e, next)
		}
		return next
	})
	config.UserAgent = controllerName(e.starts)
	client, err := versioned.NewForConfig(config)
	must(err)
	kube, err := kubernetes.NewForConfig(config)
	must(err)
	objects, err := dynamic.NewForConfig(config)
	must(err)
	factory := informers.NewFactory(kube)
	kind := factory.For(sequentialjob.Name)
	c, err := sequentialjob.New(sequentialjob.Config{
		Client: client, Kube: kube, Informers: kind, Dynamic: objects, HoldQuota: true, Recorder: silent{}, Clock: clock.RealClock{}, Workers: 1,
	})
	must(err)
	watches, err := factory.Build(kind)
	must(err)
	ctx, cancel := context.WithCancel(quiet)
	p := &process{cancel: cancel, ended: make(chan struct{})}
	e.process = p
	e.mu.Lock()
	e.running = append(e.running, cancel)
	e.mu.Unlock()
	watches.Start(ctx)
	go func() {
		defer close(p.ended)
		for len(kind.Unfilled()) > 0 && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		c.Run(ctx)
	}()
	e.Note("controller starts")
	synctest.Wait()
}

// silent is a recorder that drops events.
type silent struct{}

var _ events.EventRecorder = silent{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

func (e *env) stop() {
	e.process.cancel()
	<-e.process.ended
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// pass lets time pass for everybody.
func (e *env) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	e.World.Pass(time.Since(e.began) - e.Since(simulation.Beginning))
	e.observe()
	if e.Traced() {
		e.noteWrites()
	}
}

// noteWrites adds those since the last time to the trace.
func (e *env) noteWrites() {
	all := e.writes()
	for _, r := range all[e.noted:] {
		e.Note("  sent %.3fs ago: %s %s %s: %d %.300s", time.Since(r.At).Seconds(), r.Verb, r.Resource.Resource, r.Name, r.Code, r.Body)
	}
	e.noted = len(all)
}

// into returns a typed copy of an object; nil if there is none.
func into[T any](object *unstructured.Unstructured) *T {
	if object == nil {
		return nil
	}
	out := new(T)
	must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out))
	return out
}

// seen returns an object of the server, typed, to be read only. It is converted once for each of its versions.
func seen[T any](e *env, object *unstructured.Unstructured) *T {
	if object == nil {
		return nil
	}
	version := object.GetResourceVersion()
	typed, known := e.typed[version].(*T)
	if !known {
		typed = into[T](object)
		e.typed[version] = typed
	}
	return typed
}

// change stores a changed copy of an object.
func change[T any](e *env, resource schema.GroupResource, object *unstructured.Unstructured, change func(*T)) {
	e.server.Change(resource, object, func(next *unstructured.Unstructured) {
		typed := into[T](next)
		change(typed)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		must(err)
		next.Object = fields
	})
}
