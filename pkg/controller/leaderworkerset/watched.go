// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"strconv"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// watched is what caches need to know of an object, and what its events lead to: the set of its label.
type watched struct {
	name      string
	namespace unique.Handle[string]
	// set is the name of the set in the label, as a rule a part of the memory of the name.
	set     string
	uid     types.UID
	version uint64
}

var _ metav1.ObjectMetaAccessor = &watched{}

func newWatched(obj metav1.Object) watched {
	w := watched{name: obj.GetName(), namespace: unique.Make(obj.GetNamespace()), set: obj.GetLabels()[leaderworkersetv1.SetNameLabelKey],
		uid: obj.GetUID()}
	if strings.HasPrefix(w.name, w.set) {
		w.set = w.name[:len(w.set)]
	}
	w.version, _ = strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // what is not well-formed is as good as absent
	return w
}

// GetObjectMeta returns what the cache needs to know of an object.
func (w *watched) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: w.name, Namespace: w.namespace.Value(), UID: w.uid, ResourceVersion: w.resourceVersion()}
}

func (w *watched) resourceVersion() string { return strconv.FormatUint(w.version, 10) }

// key is the name of the set.
func (w *watched) key() cache.ObjectName { return cache.NewObjectName(w.namespace.Value(), w.set) }

// handleOf returns the handle of a string that many objects share.
func handleOf[S ~string](s S) unique.Handle[string] { return unique.Make(string(s)) }

// watchedPod is what the cache keeps of a pod. A set has many pods that share nearly everything.
type watchedPod struct {
	watched
	podFacts
	// failure is what failed first in the pod; nil if nothing did.
	failure *helper.PodFailure
	// unschedulable is why the scheduler finds no node for the pod. Many pods share the words.
	unschedulable unique.Handle[string]
}

// podFacts are what may change in a pod, and leads to a look at its set.
type podFacts struct {
	controller, revision, ownRevision, node, leader unique.Handle[string]
	// size is the number of pods of its group; 0 if that is not known.
	index, group, size                                    int32
	phase                                                 corev1.PodPhase
	ready, restarted, deleting, requestsTPUs, heldByKueue bool
	waitsForNode                                          bool
	// notReadySince and deletingSince are 0 if they are not known.
	created, notReadySince, deletingSince int64
}

func newWatchedPod(pod *corev1.Pod) *watchedPod {
	p := plan.PodOf(pod)
	kept := &watchedPod{watched: newWatched(pod), failure: helper.FailureOfPod(pod), podFacts: podFacts{
		waitsForNode: p.Unschedulable != "",
		controller:   handleOf(p.Controller), revision: handleOf(p.Revision), ownRevision: handleOf(p.OwnRevision), node: handleOf(p.Node),
		leader: handleOf(p.LeaderName),
		index:  p.Index, group: p.Group, size: p.Size, phase: phaseName(p.Phase), ready: p.Ready, restarted: p.Restarted, deleting: p.Deleting,
		requestsTPUs: p.RequestsTPUs,
		created:      p.Created.Unix(), heldByKueue: p.HeldByKueue,
	}}
	kept.unschedulable = handleOf(text.TruncateWithEllipsis(text.Printable(p.Unschedulable), failures.MaxReason))
	if !p.NotReadySince.IsZero() {
		kept.notReadySince = p.NotReadySince.Unix()
	}
	if p.Deleting {
		kept.deletingSince = p.DeletingSince.Unix()
	}
	return kept
}

// plan returns what decisions use of the pod.
func (w *watchedPod) plan() plan.Pod {
	p := plan.Pod{
		Ref: plan.Ref{Name: w.name, UID: w.uid}, Controller: types.UID(w.controller.Value()), Index: w.index, Group: w.group, Size: w.size,
		Revision: w.revision.Value(), OwnRevision: w.ownRevision.Value(),
		Phase: w.phase, Ready: w.ready, Restarted: w.restarted, Deleting: w.deleting, Node: w.node.Value(), Created: metav1.Unix(w.created, 0),
		RequestsTPUs: w.requestsTPUs, HeldByKueue: w.heldByKueue, LeaderName: w.leader.Value(),
		Unschedulable: w.unschedulable.Value(),
	}
	if w.notReadySince != 0 {
		p.NotReadySince = metav1.Unix(w.notReadySince, 0)
	}
	if w.deletingSince != 0 {
		p.DeletingSince = metav1.Unix(w.deletingSince, 0)
	}
	return p
}

// phaseName returns the constant of the phase, so that no memory is kept for it.
func phaseName(phase corev1.PodPhase) corev1.PodPhase {
	for _, known := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
		if phase == known {
			return known
		}
	}
	return phase
}

// watchedWorkers is what the cache keeps of a StatefulSet that is not that of the leaders of a set.
type watchedWorkers struct {
	watched
	// workers are empty if no pod controls the StatefulSet.
	workers    plan.Workers
	controlled bool
	// orphan is what decisions use of the object if it has no controller and a set may adopt it; nil otherwise.
	orphan *plan.Orphan
}

func newWatchedWorkers(sts *appsv1.StatefulSet) *watchedWorkers {
	kept := &watchedWorkers{watched: newWatched(sts), orphan: plan.OrphanOf(sts)}
	if owner := metav1.GetControllerOfNoCopy(sts); owner != nil && owner.Kind == "Pod" &&
		owner.APIVersion == corev1.SchemeGroupVersion.String() {
		kept.workers, kept.controlled = plan.WorkersOf(sts), true
		kept.workers.Name, kept.workers.ResourceVersion = kept.name, ""
	}
	return kept
}

// watchedRef is what the cache keeps of a child of which existence matters.
type watchedRef struct {
	watched
	controller types.UID
	// owner is the name of the set that controls the child, as a rule a part of the memory of the name; empty if none does, or if the child
	// is being deleted.
	owner string
	// ofLeader means that a pod with the name of a leader pod of its set controls it.
	ofLeader bool
	// orphan is what decisions use of the object if it has no controller and a set may adopt it; nil otherwise.
	orphan *plan.Orphan
}

func newWatchedRef(obj metav1.Object) *watchedRef {
	kept := &watchedRef{watched: newWatched(obj), orphan: plan.OrphanOf(obj)}
	if child := plan.ChildOf(obj); child.Controller != "" {
		kept.controller, kept.ofLeader = child.Controller, child.OfLeader
	}
	if owner := metav1.GetControllerOfNoCopy(obj); ofSet(owner) && obj.GetDeletionTimestamp() == nil {
		kept.owner = owner.Name
		if kept.owner == kept.set {
			kept.owner = kept.set // the name in the reference has memory of its own
		}
	}
	return kept
}

// watchedRevision is what the cache keeps of a ControllerRevision of a StatefulSet.
type watchedRevision struct {
	watchedRef
	// revision is the key of the revision of the set from which its pods are made.
	revision unique.Handle[string]
}

// watchedNode is what the cache keeps of a node.
type watchedNode struct {
	watched
	labels map[string]string
}
