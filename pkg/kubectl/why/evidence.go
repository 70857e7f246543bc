// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// Evidence is all that a diagnosis is made from. Maps by name hold nil for an object that does not exist, and nothing for
// one that was not looked at.
type Evidence struct {
	Namespace, Name string
	// Now is when the reading began.
	Now time.Time
	// JobSet, Sequence, Set or RolesSet is the object that is explained. All are nil when it could not be read, for the reason of Unread.
	JobSet   *jobsetv1alpha2.JobSet
	Sequence *batchv1alpha1.SequentialJob
	Set      *leaderworkersetv1.LeaderWorkerSet
	RolesSet *disaggregatedsetv1.DisaggregatedSet
	Unread   error
	// Replicas are the groups of a LeaderWorkerSet; nil for other kinds. TakenSet is a StatefulSet of its name that it does not own.
	Replicas *snapshot.LeaderWorkerSet
	TakenSet *appsv1.StatefulSet
	// Roles are the roles of a DisaggregatedSet; nil for other kinds. RoleChildren are a few of its LeaderWorkerSets that
	// are not ready, with what explains it.
	Roles        *snapshot.Roles
	RoleChildren []*Evidence
	// TakenRoleSets are LeaderWorkerSets under the names of the set's that it does not own. Scalers are those under the
	// names of its scalers, whoever owns them.
	TakenRoleSets map[string]*leaderworkersetv1.LeaderWorkerSet
	Scalers       map[string]*disaggregatedsetv1.DisaggregatedSetRoleScaler
	// ServerGates are the feature gates of the server; nil if they were not read.
	ServerGates map[string]bool
	// Gangs are the PodGroups that pods wait for, by name, of schedulers that have a kind of their own, by product.
	Gangs map[string]map[string]*unstructured.Unstructured
	// Child is the JobSet that the current step of a sequence runs; nil for other steps.
	Child *Evidence
	// Jobs and Pods belong to the set, or to the current step of a sequence; without the object, they carry its name.
	Jobs []*batchv1.Job
	Pods []*corev1.Pod
	// Events are the warnings of the namespace, a bounded number of them.
	Events []corev1.Event
	// APIService is the APIService of the group; nil when there is none, or it was not read.
	APIService *unstructured.Unstructured
	// Record is the record of the store of the server; nil when there is none, or it was not read.
	Record *witness.Record
	// Leases are the leases of the controller.
	Leases     []coordinationv1.Lease
	LeasesRead bool
	Nodes      map[string]*corev1.Node
	// Candidates are the nodes whose labels the pods without a node ask for, if they ask for some.
	Candidates     []corev1.Node
	CandidatesRead bool
	Claims         map[string]*corev1.PersistentVolumeClaim
	// DeviceClaims and DeviceTemplates are what pods without a node ask for devices by.
	DeviceClaims    map[string]*resourcev1.ResourceClaim
	DeviceTemplates map[string]*resourcev1.ResourceClaimTemplate
	Quotas          []corev1.ResourceQuota
	Services        map[string]*corev1.Service
	// Budgets are the budgets of the namespace, a bounded number of them. They are not read without pods of Jobs.
	Budgets []policyv1.PodDisruptionBudget
	// TakenJobs are Jobs under the names of the set's that the set does not own.
	TakenJobs map[string]*batchv1.Job
	// FormerJobs are Jobs that carry the name of a JobSet and the UID of another one.
	FormerJobs []*batchv1.Job
	Kueue      Kueue
	PodGroups  map[string]*unstructured.Unstructured
	// Placing are the events that say why the scheduler chooses the domains of Jobs with exclusive placement.
	Placing []corev1.Event
	// Domains are the domains in which pods of a Job that was placed there find no node, as "label=value". They are nil if
	// they could not be read.
	Domains map[string]*domain
	// of is the kind of the object; nil for JobSet.
	of *kind
	// Near are existing objects of any kind with names that resemble the name of one that does not exist, as KIND/NAME; Elsewhere are
	// namespaces that have one of this very name.
	Near, Elsewhere []string
	NotLookedAt     []Gap
}

// Kueue is what the queueing system says about a set. A set without a queue has the zero value.
type Kueue struct {
	// Served means that the cluster has the API of Kueue, and Absent that it has said that it has not. Neither is true before it was asked.
	Served, Absent bool
	// Workload is the Workload of the set. The Read flags distinguish a missing object from one that was not read.
	Workload, LocalQueue, ClusterQueue             *unstructured.Unstructured
	WorkloadRead, LocalQueueRead, ClusterQueueRead bool
	// Waiting are all Workloads of the namespace; nil if they were not read, or are too many.
	Waiting []unstructured.Unstructured
	// Preemptor is the Workload for which the Workload of the set had to make room; nil if none did, or if it is not known.
	Preemptor *unstructured.Unstructured
	// Clusters are the MultiKueueClusters that the Workload may run in; nil without such.
	Clusters []*unstructured.Unstructured
}

// diagnosis is evidence with the indexes that rules use.
type diagnosis struct {
	*Evidence
	podsOf  map[types.UID][]*corev1.Pod
	jobByID map[types.UID]*batchv1.Job
	// current are the Jobs of the present attempt, and previous are Jobs of earlier attempts that are not gone yet.
	current, previous []*batchv1.Job
	// live are the pods of the present attempt that neither ended nor are being deleted.
	live []*corev1.Pod
	// missing are the names of Jobs that the set needs and has not. None when Jobs cannot be read.
	missing []string
}

func newDiagnosis(e *Evidence) *diagnosis {
	d := &diagnosis{Evidence: e, podsOf: map[types.UID][]*corev1.Pod{}, jobByID: map[types.UID]*batchv1.Job{}}
	for _, pod := range e.Pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			d.podsOf[owner.UID] = append(d.podsOf[owner.UID], pod)
		}
	}
	names := map[string]bool{}
	for _, job := range e.Jobs {
		d.jobByID[job.UID] = job
		names[job.Name] = true
		if d.isPrevious(job) {
			d.previous = append(d.previous, job)
			continue
		}
		d.current = append(d.current, job)
		for _, pod := range d.podsOf[job.UID] {
			if !snapshot.PodEnded(pod) && pod.DeletionTimestamp == nil {
				d.live = append(d.live, pod)
			}
		}
	}
	if e.Replicas != nil {
		d.live = alive(e.Pods)
	}
	if e.JobSet != nil && !e.forbidden("jobs") {
		d.missing = missingJobs(e.JobSet, names)
	}
	return d
}

// missingJobs returns the names of the Jobs that a set needs and that do not exist.
func missingJobs(js *jobsetv1alpha2.JobSet, existing map[string]bool) (missing []string) {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		for index := range int(helper.Replicas(rj)) {
			if name := helper.JobName(js.Name, rj.Name, index); !existing[name] {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// isPrevious reports whether a Job belongs to an attempt before the present one.
func (d *diagnosis) isPrevious(job *batchv1.Job) bool {
	return d.JobSet != nil && (&snapshot.Set{JobSet: d.JobSet}).Outdated(job)
}

// about returns the events of one object, the latest first.
func (d *diagnosis) about(uid types.UID, reasons ...string) []corev1.Event {
	var out []corev1.Event
	for i := range d.Events {
		e := &d.Events[i]
		if e.InvolvedObject.UID == uid && (len(reasons) == 0 || slices.Contains(reasons, e.Reason)) {
			out = append(out, *e)
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return seen(&b).Compare(seen(&a)) })
	return out
}

// seen is when an event happened last.
func seen(e *corev1.Event) time.Time {
	latest := e.CreationTimestamp.Time
	times := []time.Time{e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}

func times(e *corev1.Event) int32 {
	if e.Series != nil {
		return max(e.Series.Count, e.Count)
	}
	return e.Count
}

// fact is an event as evidence about the object.
func eventFact(e *corev1.Event) Fact {
	f := Fact{Object: object(e.InvolvedObject.Kind, e.InvolvedObject.Name), Text: "event " + e.Reason + ": " + oneLine(e.Message),
		Time: at(seen(e))}
	if n := times(e); n > 1 {
		f.Count = n
	}
	return f
}

func object(kind, name string) string { return strings.ToLower(kind) + "/" + name }

func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// oneLine makes one line of a message from another source.
func oneLine(text string) string { return cli.Clean(text) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
