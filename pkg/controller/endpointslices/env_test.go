// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	setsfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	namespace = "ns"
	name      = "js"
	// sharer is another set that may use the Service.
	sharer = "other"
)

// mutant is how the controller acts: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	// forgetful controllers do not wait until caches show what they wrote, and careless ones do not try again what failed.
	forgetful, careless bool
	// silent ones report no refusals.
	silent bool
	// overwriting ones change Services whatever others have changed meanwhile, and blind ones see all pods in each slice of the cluster.
	overwriting, blind bool
	// nervous ones take the first failure of a look-up for a lasting one, and presuming ones an answer that is missing for a failure.
	nervous, presuming bool
	// deaf ones treat every refusal as a failure that passes. hasty ones treat the refusal of a server that has just started as a lasting one.
	deaf, hasty bool
	// lost are requests that never reach a server, by verb and kind.
	lost string
	// need changes what a cache holds, and handler what is told of it.
	need    func(*informers.Need)
	handler func(resource string, handler cache.ResourceEventHandler) cache.ResourceEventHandler
	// due changes when to look again.
	due func(queue.Due) queue.Due
}

// clients are the clients of the API servers for whoever asks for nothing but what resources are called.
var (
	kubeOfNobody = fake.NewClientset()
	setsOfNobody = setsfake.NewClientset()
	factory      = informers.NewFactory(kubeOfNobody)
)

// env is everything in one history.
type env struct {
	*simulation.World
	mutant           mutant
	main, aggregated simulation.Server

	sets     *simulation.Resource[*jobsetv1alpha2.JobSet]
	services *simulation.Resource[*corev1.Service]
	pods     *simulation.Resource[*corev1.Pod]
	slices   *simulation.Resource[*discoveryv1.EndpointSlice]
	nodes    *simulation.Resource[*corev1.Node]

	// mode is the mode of sets without the annotation, and publish is whether Services publish addresses of pods that are not ready.
	mode    string
	publish bool
	// auto means that sets are large, have a status, and may be in the mode auto.
	auto bool
	// labeled Services carry labels of their set, which the cluster copies to its slices.
	labeled bool
	// dns is what DNS servers answer: nil for the record.
	dns error
	// calm means that the storm is over, since a time. late means that a request under way arrives.
	calm bool
	late bool
	// seen is the number of writes that others have seen.
	seen int

	worker  *simulation.Worker
	process *process
	rules   rules
}

func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream, autoStream = 0x656e64706f696e74, 0x6175746f
	d := simulation.NewDice(seed, stream)
	e := &env{
		World: simulation.NewWorld(d, trace), mutant: m, publish: d.Percent(70), labeled: d.Percent(30),
		auto: simulation.NewDice(seed, autoStream).Percent(35), // histories without it are as they were
	}
	e.mode = e.randomMode(jobsetv1alpha2.ServiceEndpointsCluster, jobsetv1alpha2.ServiceEndpointsController, jobsetv1alpha2.ServiceEndpointsController)
	e.RandomTrouble()
	e.main = simulation.Server{Versions: simulation.Versions{Last: 1}, Ahead: simulation.OneOf(d, 0, -40*time.Second, time.Minute), Refusals: map[string]error{}}
	e.aggregated = simulation.Server{Versions: simulation.Versions{Last: 10_000}, Ahead: simulation.OneOf(d, 0, time.Minute), Refusals: map[string]error{}}
	e.sets = simulation.NewResource[*jobsetv1alpha2.JobSet](e.World, &e.aggregated, "jobset")
	e.services = simulation.NewResource[*corev1.Service](e.World, &e.main, "service")
	e.pods = simulation.NewResource[*corev1.Pod](e.World, &e.main, "pod")
	e.slices = simulation.NewResource[*discoveryv1.EndpointSlice](e.World, &e.main, "endpointslice")
	e.nodes = simulation.NewResource[*corev1.Node](e.World, &e.main, "node")
	e.rules = rules{env: e, stale: map[resolved]time.Time{}, missing: map[types.UID]time.Time{}, runs: map[resolved]time.Time{}}
	e.worker = &simulation.Worker{World: e.World, Careless: m.careless}
	e.createSet(name)
	e.startProcess()
	return e
}

// set returns a stored set; nil if there is none.
func (e *env) set(name string) *jobsetv1alpha2.JobSet {
	js, _ := e.sets.Get(name)
	return js
}

// service returns the stored Service; nil if there is none.
func (e *env) service() *corev1.Service {
	svc, _ := e.services.Get(name)
	return svc
}

// managed returns the stored slices of the controller.
func (e *env) managed() (managed []*discoveryv1.EndpointSlice) {
	for _, slice := range e.slices.Objects {
		if isManaged(slice) {
			managed = append(managed, slice)
		}
	}
	return managed
}

func isManaged(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == "controller.jobset-apiserver.io"
}

func switched(svc *corev1.Service) bool {
	return svc.Spec.Selector[jobsetv1alpha2.EndpointsKey] == jobsetv1alpha2.ServiceEndpointsController
}

var _ endpoints.Queue = &process{}
