// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	namespace = "ns"
	name      = "lws"
)

var key = cache.NewObjectName(namespace, name)

// mutant is how the controller decides and acts: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	decide func(plan.Observed) plan.Plan
	finish func(plan.Observed, plan.Plan, plan.Results) plan.Outcome
	// forgetful controllers do not wait until the caches show what they wrote.
	forgetful bool
	// overwriting ones store a status whatever happened to the set meanwhile.
	overwriting bool
	// careless ones do not try again what failed.
	careless bool
	// hurried ones ask too early again for children that were denied.
	hurried bool
	// storming ones go on at once although a status was not stored.
	storming bool
	// blind ones do not count pods that are lost, and eager ones try again what failed as soon as anything is due.
	blind, eager bool
	// credulous ones believe what a set that cannot be read seems to want.
	credulous bool
	// misreading ones misread the leaders that another process has known.
	misreading bool
	// With everStarted, all workers that are gone count as workers that had started.
	everStarted bool
}

// faultless is the real controller.
var faultless = mutant{decide: plan.Decide, finish: plan.Finish}

// env is everything in one history.
type env struct {
	mutant
	*simulation.World
	faults faults

	sets         simulation.Store[*leaderworkersetv1.LeaderWorkerSet]
	statefulSets simulation.Store[*appsv1.StatefulSet]
	pods         simulation.Store[*corev1.Pod]
	services     simulation.Store[*corev1.Service]
	revisions    simulation.Store[*appsv1.ControllerRevision]
	podGroups    simulation.Store[*unstructured.Unstructured]
	// templates are the templates of StatefulSets by their UID and the name of their own revision.
	templates map[types.UID]map[string]*corev1.PodTemplateSpec

	// gang is the scheduler of gangs, dropping means that the API drops maxUnavailable of StatefulSets, and unlabeled are
	// the nodes without a domain.
	gang      plan.GangProvider
	dropping  bool
	unlabeled map[string]bool
	// outage means that the server of the set is away, and servedSince is when it has returned. refusals are StatefulSets
	// whose pods were refused.
	outage      bool
	servedSince time.Time
	refusals    map[types.UID]refusal
	// lostInUse means that a user has deleted a revision that groups have.
	lostInUse bool
	// orphaned means that a set was deleted without its children. reported are the times of events by their reason and note.
	orphaned bool
	reported map[string]time.Time

	// denials are what the API servers answer to requests, by verb and kind.
	denials map[string]string
	trouble trouble
	// skew is how far the clock of kube-apiserver is ahead.
	skew time.Duration

	hardships
	// template is what the set is made of when a user creates it.
	template *leaderworkersetv1.LeaderWorkerSet
	// writes is the number of requests of the controller that were to change something.
	writes int

	process *process
	// rival is a second controller that runs at the same time; nil if there is none.
	rival *process
	rules *rules
}

// newEnv returns an environment in which a user has just created a set, and a controller starts.
func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x6c6561646572
	d := simulation.NewDice(seed, stream)
	e := &env{
		mutant: m, World: simulation.NewWorld(d, trace), faults: randomFaults(d),
		templates: map[types.UID]map[string]*corev1.PodTemplateSpec{}, unlabeled: map[string]bool{}, refusals: map[types.UID]refusal{}, reported: map[string]time.Time{},
		denials: map[string]string{}, skew: simulation.OneOf(d, 0, 0, -5*time.Minute, -time.Minute, 2*time.Minute, 5*time.Minute),
	}
	e.RandomTrouble()
	e.sets.Versions = &simulation.Versions{Last: 1000} // the two servers count apart
	cluster := &simulation.Versions{Last: 1}
	e.statefulSets.Versions, e.pods.Versions, e.services.Versions, e.revisions.Versions = cluster, cluster, cluster, cluster
	e.podGroups.Versions = cluster
	e.rules = newRules(e)
	e.template = randomSet(d)
	e.randomCluster(d)
	e.createSet()
	e.startProcess()
	return e
}

// stored is the present time as kube-apiserver stores it.
func (e *env) stored() metav1.Time { return metav1.NewTime(e.byCluster(e.Now()).Truncate(time.Second)) }

// byCluster is a time by the clock of kube-apiserver.
func (e *env) byCluster(t time.Time) time.Time { return t.Add(e.skew) }

// set returns the stored set; nil if there is none.
func (e *env) set() *leaderworkersetv1.LeaderWorkerSet {
	if e.hidden != nil {
		return e.hidden
	}
	set, found := e.sets.Get(name)
	if !found {
		return nil
	}
	return set
}

// leaders returns the stored leader StatefulSet of the stored set; nil if there is none.
func (e *env) leaders() *appsv1.StatefulSet {
	sts, found := e.statefulSets.Get(name)
	if set := e.set(); !found || set == nil || !metav1.IsControlledBy(sts, set) {
		return nil
	}
	return sts
}

// leader returns the leader pod of a group of the stored set; nil if there is none.
func (e *env) leader(group int) *corev1.Pod {
	sts := e.leaders()
	pod, found := e.pods.Get(fmt.Sprintf("%s-%d", name, group))
	if sts == nil || !found || !metav1.IsControlledBy(pod, sts) {
		return nil
	}
	return pod
}

// workers returns the StatefulSet of workers of a leader pod; nil if there is none.
func (e *env) workers(leader *corev1.Pod) *appsv1.StatefulSet {
	sts, found := e.statefulSets.Get(leader.Name)
	if !found || !metav1.IsControlledBy(sts, leader) {
		return nil
	}
	return sts
}

// podsOf returns the pods of a StatefulSet.
func (e *env) podsOf(sts *appsv1.StatefulSet) (own []*corev1.Pod) {
	for _, pod := range e.pods.Objects {
		if metav1.IsControlledBy(pod, sts) {
			own = append(own, pod)
		}
	}
	return own
}
