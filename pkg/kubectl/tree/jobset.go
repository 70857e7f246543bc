// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobSet is the Loader of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (View, error) {
	return load(ctx, c, name, snapshot.Load, New)
}

// The states of a Job that does not exist.
const (
	Missing = snapshot.Missing // it is still to be created
	Removed = snapshot.Removed // it is not needed any more: its set has finished, or is being deleted
)

// Tree is the set, and what -o json prints. Its fields are described in docs/kubectl.md.
type Tree struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.Summary
	Restarts        int             `json:"restarts"`
	CountedRestarts int             `json:"countedRestarts"`
	RestartLimit    int             `json:"restartLimit"`
	CreateTime      metav1.Time     `json:"createTime"`
	ReplicatedJobs  []ReplicatedJob `json:"replicatedJobs"`
}

// ReplicatedJob is a replicatedJob.
type ReplicatedJob struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	// Ready is the number of Jobs that are ready or have succeeded, as the status of the set counts them.
	Ready int `json:"ready"`
	// Restarts is the sum of the restarts of its single Jobs.
	Restarts int   `json:"restarts"`
	Jobs     []Job `json:"jobs"`
}

// Job is a Job that exists or should.
type Job struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	State string `json:"state"`
	// Message explains the state: of a missing Job what it waits for, of a removed one what ended it, of a failed one its condition.
	Message string `json:"message,omitempty"`
	// Ready is the number of pods that are ready or have succeeded, of Size.
	Ready      int          `json:"ready"`
	Size       int          `json:"size"`
	Restarts   int          `json:"restarts"`
	CreateTime *metav1.Time `json:"createTime,omitempty"`
	// Domain is the topology domain that a Job with exclusive placement was given, a value of the label TopologyKey. Both
	// are absent while it has none.
	Domain      string `json:"domain,omitempty"`
	TopologyKey string `json:"topologyKey,omitempty"`
	Pods        []Pod  `json:"pods,omitempty"`
}

// exists returns whether there is such a Job.
func (j *Job) exists() bool { return j.State != Missing && j.State != Removed }

// Pod is a pod of a Job.
type Pod struct {
	Name string `json:"name"`
	// Index is the completion index, or in a LeaderWorkerSet that in the group; absent for Jobs that are not Indexed.
	Index           *int   `json:"index,omitempty"`
	State           string `json:"state"`
	Message         string `json:"message,omitempty"`
	Ready           bool   `json:"ready"`
	ContainersReady int    `json:"containersReady"`
	Containers      int    `json:"containers"`
	Restarts        int    `json:"restarts"`
	Node            string `json:"node,omitempty"`
	// Revision is the key of the revision of a pod of a LeaderWorkerSet.
	Revision   string      `json:"revision,omitempty"`
	CreateTime metav1.Time `json:"createTime"`

	severity severity
}

// New derives the tree from what was read.
func New(s *snapshot.Set) *Tree {
	js := s.JobSet
	t := &Tree{
		Name: js.Name, Namespace: js.Namespace, Summary: snapshot.Summarize(js),
		Restarts: int(js.Status.Restarts), CountedRestarts: int(helper.CountedRestarts(&js.Status)), RestartLimit: int(helper.RestartLimit(js)),
		CreateTime: js.CreationTimestamp, ReplicatedJobs: []ReplicatedJob{},
	}
	pods := map[types.UID][]*corev1.Pod{}
	for _, pod := range s.Pods {
		owner := metav1.GetControllerOfNoCopy(pod).UID
		pods[owner] = append(pods[owner], pod)
	}
	jobs, names := map[string][]*batchv1.Job{}, []string{}
	for i := range js.Spec.ReplicatedJobs {
		names = append(names, js.Spec.ReplicatedJobs[i].Name)
		jobs[js.Spec.ReplicatedJobs[i].Name] = nil
	}
	for _, job := range s.Jobs {
		name := snapshot.ReplicatedJob(job)
		if _, known := jobs[name]; !known {
			names = append(names, name)
		}
		jobs[name] = append(jobs[name], job)
	}
	for place, name := range names {
		t.ReplicatedJobs = append(t.ReplicatedJobs, newReplicatedJob(s, place, name, jobs[name], pods))
	}
	return t
}

// newReplicatedJob describes the replicatedJob at that place. The spec does not have the replicatedJob if the place is behind its last one.
func newReplicatedJob(s *snapshot.Set, place int, name string, jobs []*batchv1.Job, pods map[types.UID][]*corev1.Pod) ReplicatedJob {
	counts := helper.CountReplicatedJob(s.JobSet, name)
	g := ReplicatedJob{Name: name, Replicas: int(counts.Wanted), Ready: int(counts.Up), Jobs: []Job{}}
	var spec *jobsetv1alpha2.ReplicatedJob
	if place < len(s.JobSet.Spec.ReplicatedJobs) {
		spec = &s.JobSet.Spec.ReplicatedJobs[place]
	}
	exists := map[int]bool{}
	for _, job := range jobs {
		j := newJob(s, job, pods[job.UID])
		exists[j.Index] = true
		g.Jobs = append(g.Jobs, j)
		g.Restarts += j.Restarts
	}
	state, why := Missing, ""
	if helper.Ended(s.JobSet) {
		state = Removed
	}
	for index := range g.Replicas {
		if exists[index] {
			continue
		}
		if why == "" {
			why = whyMissing(s.JobSet, place)
		}
		restarts := s.JobRestarts(name, index)
		g.Restarts += restarts
		j := Job{
			Name: helper.JobName(s.JobSet.Name, name, index), Index: index, State: state, Message: why,
			Size: templateSize(&spec.Template.Spec), Restarts: restarts,
		}
		j.addDomain(s.JobSet, name)
		g.Jobs = append(g.Jobs, j)
	}
	return g
}

// whyMissing explains why Jobs of a replicatedJob do not exist, as far as the set itself shows it.
func whyMissing(js *jobsetv1alpha2.JobSet, place int) string {
	if finished, _ := helper.Finished(js); finished != "" {
		return "the set has finished"
	}
	if js.DeletionTimestamp != nil {
		return "the set is being deleted"
	}
	if waiting := snapshot.WaitingFor(js, place); len(waiting) > 0 {
		return waiting[0].String()
	}
	switch manager := ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName); {
	case snapshot.InMultiKueue(js):
		return "Kueue runs the set in another cluster; `kubectl jobset why " + js.Name + "` names it"
	case manager != jobsetv1alpha2.JobSetControllerName:
		return "left to the controller " + manager
	case meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.ChildNameConflict):
		return "the name is taken, see the condition " + jobsetv1alpha2.ChildNameConflict
	case meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.PlacementPending):
		return "waits for a topology domain, see `kubectl jobset why " + js.Name + "`"
	case meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetRestarting):
		return "not created again yet"
	}
	return "not created yet; ask `kubectl jobset why " + js.Name + "` if this stays"
}

func newJob(s *snapshot.Set, job *batchv1.Job, pods []*corev1.Pod) Job {
	j := jobOf(job, s.JobState(job), s.Outdated(job), pods)
	j.Index, j.Restarts = snapshot.JobIndex(job), s.JobRestarts(snapshot.ReplicatedJob(job), snapshot.JobIndex(job))
	if !s.Outdated(job) {
		j.addDomain(s.JobSet, snapshot.ReplicatedJob(job))
	}
	return j
}

// jobOf describes a Job of any owner.
func jobOf(job *batchv1.Job, state string, outdated bool, pods []*corev1.Pod) Job {
	j := Job{
		Name: job.Name, State: state, Size: templateSize(&job.Spec), CreateTime: &job.CreationTimestamp, Ready: int(job.Status.Succeeded),
	}
	if j.State == snapshot.JobFailed {
		for _, of := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget} {
			if c := helper.TrueJobCondition(job, of); c != nil {
				j.Message = c.Reason + ": " + c.Message
				break
			}
		}
	}
	if outdated {
		j.Message = "of an earlier attempt"
	}
	for _, pod := range pods {
		p := newPod(pod)
		if p.Ready && !snapshot.PodEnded(pod) {
			j.Ready++
		}
		j.Pods = append(j.Pods, p)
	}
	return j
}

// templateSize is the number of pods that have to be ready or to succeed.
func templateSize(spec *batchv1.JobSpec) int {
	return int(ptr.Deref(spec.Completions, ptr.Deref(spec.Parallelism, 1)))
}

func newPod(pod *corev1.Pod) Pod {
	p := Pod{
		Name: pod.Name, State: snapshot.PodState(pod), Ready: snapshot.PodReady(pod) && pod.DeletionTimestamp == nil,
		Containers: len(pod.Spec.Containers), Restarts: snapshot.ContainerRestarts(pod),
		Node: pod.Spec.NodeName, CreateTime: pod.CreationTimestamp,
	}
	if index := snapshot.PodIndex(pod); index >= 0 {
		p.Index = &index
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Ready {
			p.ContainersReady++
		}
	}
	p.severity = severityOf(pod)
	if p.severity > well {
		p.Message = podMessage(pod)
	}
	return p
}

// addDomain adds the topology domain that a Job with exclusive placement was given in the present attempt.
func (j *Job) addDomain(js *jobsetv1alpha2.JobSet, replicatedJob string) {
	at := js.Status.Placement
	if at == nil || at.Restarts != js.Status.Restarts {
		return
	}
	for i := range at.ReplicatedJobs {
		rj := &at.ReplicatedJobs[i]
		if rj.Name == replicatedJob && j.Index >= 0 && j.Index < len(rj.Jobs) && rj.Jobs[j.Index].Domain != "" {
			j.Domain, j.TopologyKey = rj.Jobs[j.Index].Domain, rj.TopologyKey
		}
	}
}
