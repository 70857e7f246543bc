// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// process is a run of the controller. What it knows ends with it.
type process struct {
	*env
	sender *simulation.Sender
	worker *simulation.Worker

	pods   []*simulation.Informer[*corev1.Pod]
	groups simulation.Informer[*batchv1alpha1.PodReadinessGroup]
	// known are the pods that the caches have shown, by prefix and name.
	known  []map[string]*members.Pod
	memory simulation.Memory
	// sizes and syncer are the real ones.
	sizes  *members.Sizes
	syncer *podgroup.Syncer

	// lastShown is when the cache of a prefix last showed a new pod.
	lastShown []time.Time
	// labeled are the pods of which the process knows that they have the label, with how often users had removed it before.
	labeled map[types.UID]int
	// refused is since when a request is refused, and refusedNow what was refused in the last sync.
	refused    map[about]time.Time
	refusedNow map[about]bool
	accepted   map[about]bool
	events     []event
	// syncBegan is when the present sync began, and seen what it was shown.
	syncBegan time.Time
	seen      []observation
	// acted is the PodReadinessGroup on which syncs have acted, and deniedFor is actedOn at the latest request of the sync that was denied:
	// the sync may read the group again after that.
	acted     metav1.ObjectMeta
	deniedFor string
	// storing means that the sync has begun to store the status.
	storing bool
	// groupUnread and jobUnread mean that the sync could not read these objects, and lastErr is how it ended.
	groupUnread, jobUnread bool
	lastErr                error
	// panicked is what has panicked in another goroutine.
	panicked any
}

// about is a request for pods of a prefix.
type about struct {
	request string
	prefix  int
}

// observation is what a sync was shown of the pods of a prefix.
type observation struct {
	labeled int
	stable  bool
}

type event struct {
	at           time.Time
	reason, note string
}

// startProcess starts a controller. It lists everything first; client-go asks for the latest state then.
func (e *env) startProcess() {
	p := &process{env: e, labeled: map[types.UID]int{}, refused: map[about]time.Time{}, seen: make([]observation, len(prefixes)), lastShown: make([]time.Time, len(prefixes))}
	p.sender = e.NewSender(e.interlude)
	p.worker = &simulation.Worker{World: e.World, Sender: p.sender, Careless: e.resigned, Eager: e.eager}
	p.groups = simulation.Informer[*batchv1alpha1.PodReadinessGroup]{From: &e.groups.Store, Handle: func(*batchv1alpha1.PodReadinessGroup, bool) { p.worker.Add(name) }}
	p.groups.List()
	// A group is read again before it becomes ready.
	p.worker.Acted = func(string) string { return cmp.Or(p.deniedFor, p.actedOn()) }
	caches := map[string]consistency.Versioned{"podreadinessgroups": &p.groups}
	for i, prefix := range prefixes {
		p.known = append(p.known, map[string]*members.Pod{})
		pods := &simulation.Informer[*corev1.Pod]{
			From: &e.pods.Store, Selects: func(pod *corev1.Pod) bool { return pod.Labels[prefix.GroupKey] != "" },
			Handle: func(pod *corev1.Pod, gone bool) { p.podChanged(i, pod, gone) },
		}
		pods.List()
		p.pods = append(p.pods, pods)
		caches["pods/"+prefix.Name] = pods
		p.lastShown[i] = e.Now()
		for _, pod := range pods.Objects {
			p.known[i][pod.Name] = members.Of(pod, prefix)
		}
	}
	p.memory = simulation.NewMemory(e.World, e.forgetful, caches)
	p.sizes = members.NewSizes(kube{p: p}, nil, nil, e)
	p.sizes.Parallel = 1
	p.syncer = newSyncer(p)
	p.worker.Add(name)
	e.process = p
	e.Note("controller starts")
}

func (p *process) caches() []simulation.Cache {
	all := []simulation.Cache{&p.groups}
	for _, pods := range p.pods {
		all = append(all, pods)
	}
	return all
}

// podChanged does what the handlers of the controller do.
func (p *process) podChanged(prefix int, pod *corev1.Pod, gone bool) {
	was := p.known[prefix][pod.Name]
	if gone {
		delete(p.known[prefix], pod.Name)
		p.worker.Add(name)
		return
	}
	is := members.Of(pod, prefixes[prefix])
	p.known[prefix][pod.Name] = is
	switch {
	case was == nil || was.UID != is.UID:
		p.lastShown[prefix] = p.Now()
		if !p.unaware {
			p.syncer.Added(key, prefix)
		}
		p.worker.Add(name)
	case was.Pod != is.Pod:
		p.worker.Add(name)
	}
}

// sync lets a worker of the controller take the group from the queue, if it is there. It reports whether it was.
func (e *env) sync() bool {
	if e.process.sender.Dead {
		e.startProcess()
	}
	p := e.process
	synced := p.worker.Sync(func(string) (queue.Due, error) { return p.syncGroup() })
	e.past.look()
	return synced
}

func (p *process) syncGroup() (due queue.Due, err error) {
	p.past.look()
	p.syncBegan, p.groupUnread, p.jobUnread, p.deniedFor, p.storing = p.Now(), false, false, "", false
	p.refusedNow, p.accepted = map[about]bool{}, map[about]bool{}
	p.Note("sync")
	due, err = p.syncer.Sync(simulation.Quiet, key)
	p.lastErr = err
	for of := range p.accepted {
		if !p.refusedNow[of] {
			delete(p.refused, of)
		}
	}
	return due, err
}

// acts notes a PodReadinessGroup on which a sync acts; nil if there is none. A cache may show an earlier generation.
func (p *process) acts(group *batchv1alpha1.PodReadinessGroup) {
	switch {
	case group == nil:
		p.acted = metav1.ObjectMeta{}
	case group.UID != p.acted.UID || group.Generation > p.acted.Generation:
		p.acted = group.ObjectMeta
	}
}

// actedOn returns the UID and the generation of the PodReadinessGroup on which the sync acts.
func (p *process) actedOn() string { return fmt.Sprint(p.acted.UID, "/", p.acted.Generation) }

// answered notes whether a request was refused.
func (p *process) answered(of about, err error) {
	if err == nil {
		p.accepted[of] = true
		return
	}
	if !strings.Contains(err.Error(), denied) {
		return
	}
	p.Seen["refused: "+of.request]++
	p.refusedNow[of], p.deniedFor = true, p.actedOn()
	if p.refused[of].IsZero() {
		p.refused[of] = p.Now()
	}
}
