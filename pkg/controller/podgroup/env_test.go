// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	namespace = "ns"
	name      = "g"
)

var key = cache.NewObjectName(namespace, name)

// prefixes are the prefixes of the pods.
var prefixes = plan.Prefixes

// mutant is the controller with a defect; the zero value has none.
type mutant struct {
	// sees changes what the cache shows of a pod, which is a copy, and seesGroup what it shows of the PodReadinessGroup.
	sees      func(*process, *members.Pod)
	seesGroup func(*batchv1alpha1.PodReadinessGroup) *batchv1alpha1.PodReadinessGroup
	// guessing controllers take owners that cannot be read for owners that are gone, and staleSizes never read sizes again.
	guessing, staleSizes bool
	// unaware controllers do not notice pods that are added.
	unaware bool
	// careless ones send requests about a name, and not about a UID or a version.
	careless bool
	// forgetful ones do not wait until the caches show what they wrote.
	forgetful bool
	// cachedGroup ones do not read the PodReadinessGroup before they label pods.
	cachedGroup bool
	// resigned ones do not try again what failed, and eager ones try at each deadline.
	resigned, eager bool
	// hurried ones patch pods too early again that were denied.
	hurried bool
	// silent ones send no events about refusals.
	silent bool
	// status changes the status before it is written.
	status func(*batchv1alpha1.PodReadinessGroup)
}

// env is everything in one history.
type env struct {
	mutant
	*simulation.World
	faults faults

	// cluster is the server of pods and Jobs, and aggregated that of PodReadinessGroups.
	cluster, aggregated *simulation.Server
	pods                *simulation.Resource[*corev1.Pod]
	jobs                *simulation.Resource[*batchv1.Job]
	groups              *simulation.Resource[*batchv1alpha1.PodReadinessGroup]
	// ended are the pods whose grace is over.
	ended map[types.UID]bool
	// unlabeled counts how often a user has removed the label of a pod.
	unlabeled map[types.UID]int

	// broken means that a server which refuses a request calls that an error of its own, and denials counts these answers.
	broken  bool
	denials int

	past    *past
	process *process
}

// newEnv returns an environment in which a controller starts, before or after some pods.
func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x706f6467726f7570
	d := simulation.NewDice(seed, stream)
	e := &env{
		mutant: m, World: simulation.NewWorld(d, trace), faults: randomFaults(d), ended: map[types.UID]bool{}, unlabeled: map[types.UID]int{},
		cluster: &simulation.Server{}, aggregated: &simulation.Server{},
	}
	e.RandomTrouble()
	e.cluster.Last, e.aggregated.Last = 1, 1000 // the two servers count apart
	e.cluster.Ahead = simulation.OneOf(d, 0, 0, 5*time.Second, -5*time.Second, time.Minute)
	e.aggregated.Ahead = simulation.OneOf(d, 0, 0, 7*time.Second, -time.Minute)
	e.cluster.Refusals, e.aggregated.Refusals = map[string]error{}, map[string]error{}
	e.pods = simulation.NewResource[*corev1.Pod](e.World, e.cluster, "pod")
	e.pods.Stays = func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning && !e.ended[pod.UID] }
	e.jobs = simulation.NewResource[*batchv1.Job](e.World, e.cluster, "job")
	e.groups = simulation.NewResource[*batchv1alpha1.PodReadinessGroup](e.World, e.aggregated, "podreadinessgroup")
	e.past = newPast(e)
	for range d.IntN(3) {
		e.createPod()
	}
	if d.Percent(50) {
		e.createGroup()
	}
	e.startProcess()
	return e
}

// group returns the stored PodReadinessGroup; nil if there is none.
func (e *env) group() *batchv1alpha1.PodReadinessGroup {
	group, found := e.groups.Get(name)
	if !found {
		return nil
	}
	return group
}

// prefixOf returns the number of the prefix of a pod; -1 for a pod of no group.
func prefixOf(pod *corev1.Pod) int {
	for i, prefix := range prefixes {
		if pod.Labels[prefix.GroupKey] != "" {
			return i
		}
	}
	return -1
}

// labeled returns whether a pod carries the label of its prefix.
func labeled(pod *corev1.Pod) bool {
	prefix := prefixOf(pod)
	return prefix >= 0 && pod.Labels[prefixes[prefix].ReadyKey] == batchv1alpha1.PodGroupReadyValue
}

// versions is the number of writes of both servers.
func (e *env) versions() int { return e.cluster.Last + e.aggregated.Last }

func ownerRef(job *batchv1.Job) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
}
