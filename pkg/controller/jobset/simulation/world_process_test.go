// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/placer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// worldProcess is a run of the controller. What it knows ends with it.
type worldProcess struct {
	*world
	sender *simulation.Sender
	worker *simulation.Worker

	sets   simulation.Informer[*jobsetv1alpha2.JobSet]
	jobs   simulation.Informer[*batchv1.Job]
	pods   simulation.Informer[*corev1.Pod]
	nodes  simulation.Informer[*corev1.Node]
	memory *consistency.ConsistencyStore
	// held are the placements of sets that hold domains, and waiting is which pods wait for a node, or have one that the
	// scheduler chose, as the caches last showed them.
	held    map[string]*jobsetv1alpha2.Placement
	waiting map[string]string
	// syncer, placer and feed are the real ones.
	syncer *jobset.Syncer
	placer *placer.Placer
	feed   *placer.Feed
	timers []*worldTimer

	// tally counts pods that restart in place, as the cache shows them.
	tally *inplace.Tally

	// synced is how many times a set was looked at.
	synced int
	// observed is what the present sync acts on, and counted how many nodes it was told of.
	observed worldObserved
	counted  int
}

// worldObserved is what a sync acts on, and which version the cache of pods had when it decided. The cache may advance before its requests
// arrive, and those of a controller that was killed arrive while another one runs.
type worldObserved struct {
	plan.Observed
	pods string
}

// startProcess starts a controller. It lists everything first.
func (w *world) startProcess() {
	p := &worldProcess{world: w, held: map[string]*jobsetv1alpha2.Placement{}, waiting: map[string]string{}, tally: inplace.New(), sender: w.NewSender(w.interlude)}
	later := p.sender.Later
	p.sender.Later = func(request func()) { later(func() { w.rules.late = true; request() }) }
	p.worker = &simulation.Worker{World: w.World, Sender: p.sender}
	var err error
	p.placer, p.feed, err = placer.NewFed(placer.Config{
		Kube: kubernetes.New(nil), Clock: worldClock{p: p}, WhenFull: w.full, Placed: p.placed, Needed: func() bool { return true },
		Wake: func(key cache.ObjectName) { p.enqueue(key.Name) },
	})
	p.check(err)
	for name, value := range priorities {
		if name != "" {
			p.check(p.feed.Show(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}))
		}
	}
	p.sets = simulation.Informer[*jobsetv1alpha2.JobSet]{From: &w.sets, Handle: p.setChanged}
	p.jobs = simulation.Informer[*batchv1.Job]{From: &w.jobs, Handle: func(job *batchv1.Job, _ bool) { p.enqueue(job.Labels[jobsetv1alpha2.JobSetNameKey]) }}
	p.pods = simulation.Informer[*corev1.Pod]{From: &w.pods, Handle: p.podChanged}
	p.nodes = simulation.Informer[*corev1.Node]{From: &w.nodes, Handle: func(node *corev1.Node, gone bool) { p.show(node, gone) }}
	p.fillCaches()
	for _, js := range p.sets.Objects {
		p.setChanged(js, false)
	}
	for _, node := range p.nodes.Objects {
		p.show(node, false)
	}
	for _, pod := range p.pods.Objects {
		p.podChanged(pod, false)
	}
	p.memory = consistency.NewConsistencyStore(w, map[string]consistency.Versioned{resourceJobSets: &p.sets, resourceJobs: &p.jobs})
	p.syncer = newWorldSyncer(p)
	p.syncer.Loop.Kind = checkedWorld{p.syncer.Loop.Kind, p}
	w.process = p
	w.Seen["starts of the controller"]++
	w.Note("controller starts")
}

// fillCaches lists everything. The pods may be those that a standby has followed: they come from another server than the sets, and may lag
// behind what the controller before has seen.
func (p *worldProcess) fillCaches() {
	for _, c := range p.caches() {
		c.List()
	}
	if standby := p.standby; standby != nil && p.Dice.Percent(50) {
		handle := p.pods.Handle
		p.pods = standby.Snapshot()
		p.pods.Handle = handle
		p.Seen["caches of standbys that lag"] += int(one(p.pods.Behind() > 0))
	}
}

func (p *worldProcess) check(err error) {
	if err != nil {
		panic(err)
	}
}

func (p *worldProcess) caches() []simulation.Cache {
	return []simulation.Cache{&p.sets, &p.jobs, &p.pods, &p.nodes}
}

// show shows the placer a change.
func (p *worldProcess) show(obj runtime.Object, gone bool) {
	if gone {
		p.check(p.feed.Remove(obj))
		return
	}
	p.check(p.feed.Show(obj))
}

// setChanged does what handlers of the real controller do: a set that holds fewer domains than before makes room.
func (p *worldProcess) setChanged(js *jobsetv1alpha2.JobSet, gone bool) {
	before, after := p.held[js.Name], js.Status.Placement
	if gone || js.DeletionTimestamp != nil || js.Status.TerminalState != "" {
		after = nil
	}
	p.held[js.Name] = after
	if before != nil && !holdsAll(after, before) && !p.deaf {
		p.placer.Freed()
	}
	p.enqueue(js.Name)
}

// holdsAll reports whether a placement has all domains of another one.
func holdsAll(after, before *jobsetv1alpha2.Placement) bool {
	if after == nil {
		return false
	}
	has := map[[2]string]bool{}
	eachPlace(after, func(at place2) { has[[2]string{at.topology, at.Domain}] = true })
	all := true
	eachPlace(before, func(at place2) { all = all && has[[2]string{at.topology, at.Domain}] })
	return all
}

// podChanged shows the placer a pod, and has its set looked at if the scheduler says something else about it.
func (p *worldProcess) podChanged(pod *corev1.Pod, gone bool) {
	p.show(pod, gone)
	p.countInPlace(pod, gone)
	state := ""
	switch wanted, _ := podTerms(pod); {
	case !gone && scheduled(pod) != nil:
		state = "waits"
	case !gone && len(wanted) > 0 && pod.Spec.NodeName != "":
		state = "landed"
	}
	if state != p.waiting[pod.Name] {
		p.waiting[pod.Name] = state
		p.enqueue(pod.Labels[jobsetv1alpha2.JobSetNameKey])
	}
}

// placed returns the sets that hold domains, as the cache shows them.
func (p *worldProcess) placed() (out []*jobsetv1alpha2.JobSet, err error) {
	for _, js := range p.sets.Objects {
		if js.Status.Placement != nil && js.Status.TerminalState == "" && js.DeletionTimestamp == nil && !p.oblivious {
			out = append(out, js)
		}
	}
	return out, nil
}

func (p *worldProcess) enqueue(name string) {
	if name != "" {
		p.worker.Add(name)
	}
}

// syncSome lets a worker of the controller take a set from the queue. It reports whether there was one.
func (w *world) syncSome() bool {
	if w.process.sender.Dead {
		w.startProcess()
	}
	w.process.fire()
	return w.process.worker.Sync(w.process.syncSet)
}

// syncSet lets the real controller sync a set.
func (p *worldProcess) syncSet(name string) (queue.Due, error) {
	p.observed, p.counted = worldObserved{}, 0
	return p.syncer.Sync(simulation.Quiet, cache.NewObjectName(namespace, name))
}

// checkedWorld is the real kind, with rules that are checked when it has decided.
type checkedWorld struct {
	jobset.Kind
	p *worldProcess
}

// Decide implements loop.Kind.
func (c checkedWorld) Decide(obs plan.Observed) plan.Plan { return c.p.checkDecision(obs) }

// checkDecision decides, and checks rules.
func (p *worldProcess) checkDecision(obs plan.Observed) plan.Plan {
	next := p.decide(p, obs)
	if !next.Asks.Empty() {
		return next
	}
	p.synced++
	if p.inPlace && p.Dice.Percent(10) {
		p.standby = ptr.To(p.pods.Snapshot())
	}
	p.observed = worldObserved{obs, p.pods.LastStoreSyncResourceVersion()}
	if p.Traced() {
		p.Note("sync of %s sees %s; decides %s", obs.JobSet.Name, describeWorld(obs), describePlan(next)+describePlacement(next.Status))
	}
	p.rules.decided(obs, next)
	return next
}
