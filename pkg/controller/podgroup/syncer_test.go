// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchv1client "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// newSyncer returns the real Syncer with the caches and the clients of a simulated process.
func newSyncer(p *process) *podgroup.Syncer {
	return podgroup.NewSyncer(podgroup.SyncerConfig{
		Host:   &children.Host{Runner: simulation.Runner{}, Consistency: p.memory, Clock: p, Denials: p.Denials(p.hurried)},
		Caches: caches{p}, Sizes: sizes{p}, Recorder: recorder{p},
		Pods:   func(string) podgroup.PodClient { return podClient{p} },
		Groups: func(string) podgroup.GroupClient { return groupClient{p} },
	})
}

// caches are the caches of a process.
type caches struct{ p *process }

func (c caches) Group(cache.ObjectName) (*batchv1alpha1.PodReadinessGroup, error) {
	group, found := c.p.groups.Get(name)
	if !found {
		group = nil
	}
	c.p.acts(group)
	if c.p.seesGroup != nil && group != nil {
		group = c.p.seesGroup(group.DeepCopy())
	}
	return group, nil
}

func (c caches) Pods(prefix int, _ cache.ObjectName) (all []*members.Pod, err error) {
	seen := observation{stable: c.p.Since(c.p.lastShown[prefix]) >= window}
	for _, stored := range c.p.pods[prefix].Objects {
		pod := members.Of(stored, prefixes[prefix])
		if pod.Labeled && !pod.Terminating && pod.Phase != plan.Failed {
			seen.labeled++
		}
		if c.p.sees != nil {
			c.p.sees(c.p, pod)
		}
		all = append(all, pod)
	}
	c.p.seen[prefix] = seen
	return all, nil
}

// sizes are the real ones, which read one owner after another.
type sizes struct{ p *process }

func (s sizes) Read(ctx context.Context, group members.Group, owners []plan.Owner, age time.Duration) (map[plan.Owner]plan.OwnerSize, error) {
	if s.p.staleSizes {
		age = 1 << 50
	}
	prefix := 0
	if group.Prefix == prefixes[1] {
		prefix = 1
	}
	all, err := s.p.sizes.Read(ctx, group, owners, age)
	if s.p.panicked != nil {
		panic(s.p.panicked)
	}
	if err == nil {
		s.p.answered(about{getJob, prefix}, nil)
		return all, nil
	}
	s.p.jobUnread = true
	s.p.answered(about{getJob, prefix}, err)
	if !s.p.guessing {
		return all, err
	}
	for _, owner := range owners {
		if _, read := all[owner]; !read {
			all[owner] = plan.OwnerSize{Unknown: true}
		}
	}
	return all, nil
}

// kube is a client that only reads Jobs.
type kube struct {
	kubernetes.Interface
	p *process
}

func (k kube) BatchV1() batchv1client.BatchV1Interface { return kubeBatch{p: k.p} }

type kubeBatch struct {
	batchv1client.BatchV1Interface
	p *process
}

func (k kubeBatch) Jobs(string) batchv1client.JobInterface { return jobClient{p: k.p} }

type jobClient struct {
	batchv1client.JobInterface
	p *process
}

// Get reads a Job. It is called in another goroutine. A panic there becomes a panic of the sync.
func (c jobClient) Get(ctx context.Context, jobName string, options metav1.GetOptions) (job *batchv1.Job, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.p.panicked, err = r, errors.New("panic")
		}
	}()
	c.p.Seen["jobs read"]++
	job, err = simulation.Client[*batchv1.Job]{Resource: c.p.jobs, Sender: c.p.sender}.Get(ctx, jobName, options)
	if err != nil && c.p.cluster.Refusals[getJob] != nil {
		c.p.sender.Refused++
		return nil, c.p.denial()
	}
	return job, err
}

// podClient is a client of pods.
type podClient struct{ p *process }

func (c podClient) Patch(_ context.Context, podName string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	var patch struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	uid, prefix := patch.Metadata.UID, 0
	if patch.Metadata.Labels[prefixes[1].ReadyKey] != "" {
		prefix = 1
	}
	if len(patch.Metadata.Labels) != 1 || patch.Metadata.Labels[prefixes[prefix].ReadyKey] != batchv1alpha1.PodGroupReadyValue {
		panic("a patch of a pod that nobody expects: " + string(data))
	}
	c.p.checkLabel(prefix, podName, uid)
	removed := c.p.unlabeled[uid]
	pod, err := simulation.Send(c.p.sender, &corev1.Pod{}, func(bool) (*corev1.Pod, error) {
		live, found := c.p.env.pods.Get(podName)
		switch {
		case c.p.cluster.Refusals[patchPod] != nil:
			err := c.p.denial()
			c.p.sender.Denied(simulation.Request("patch", prefixes[prefix].ReadyKey, &metav1.ObjectMeta{Name: string(uid)}), err)
			return nil, err
		case !found:
			return nil, simulation.ErrNotFound
		case live.UID != uid && !c.p.careless:
			c.p.Seen["patches of pods that were replaced"]++
			return nil, otherUID(podName)
		case live.UID != uid:
			c.p.Fail(simulation.RuleOthers, "the controller patches pod %s (%s), and means %s", podName, live.UID, uid)
		}
		c.p.Note("  labels pod %s", podName)
		c.p.Seen["pods labeled"]++
		return c.p.env.pods.Change(live, func(pod *corev1.Pod) { pod.Labels[prefixes[prefix].ReadyKey] = batchv1alpha1.PodGroupReadyValue }), nil
	})
	if err == nil && !c.p.sender.Deposed {
		c.p.labeled[uid] = removed
	}
	if err == nil || !apierrors.IsNotFound(err) {
		c.p.answered(about{patchPod, prefix}, err)
	}
	return pod, err
}

// otherUID is what kube-apiserver answers to a patch with the UID of another pod.
func otherUID(podName string) error {
	err := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), podName, nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.uid"}}
	return err
}

// groupClient is a client of PodReadinessGroups.
type groupClient struct{ p *process }

func (c groupClient) client() simulation.Client[*batchv1alpha1.PodReadinessGroup] {
	return simulation.Client[*batchv1alpha1.PodReadinessGroup]{Resource: c.p.env.groups, Sender: c.p.sender}
}

func (c groupClient) Get(ctx context.Context, groupName string, options metav1.GetOptions) (*batchv1alpha1.PodReadinessGroup, error) {
	if c.p.cachedGroup {
		return nil, simulation.ErrTimeout
	}
	group, err := c.client().Get(ctx, groupName, options)
	if err != nil && !apierrors.IsNotFound(err) {
		c.p.groupUnread = true
		return group, err
	}
	if !c.p.storing { // else only the version is taken from what was read
		c.p.acts(group)
	}
	return group, err
}

func (c groupClient) UpdateStatus(_ context.Context, wanted *batchv1alpha1.PodReadinessGroup, _ metav1.UpdateOptions) (*batchv1alpha1.PodReadinessGroup, error) {
	c.p.storing = true
	wanted = wanted.DeepCopy()
	if c.p.status != nil {
		c.p.status(wanted)
	}
	c.p.checkStatus(wanted)
	uid := wanted.UID
	if c.p.careless {
		wanted.UID, wanted.ResourceVersion = "", ""
	}
	client := c.client()
	client.Changed = func(before, after *batchv1alpha1.PodReadinessGroup, _ string) {
		was, is := &before.Status, &after.Status
		switch {
		case before.UID != uid:
			c.p.Fail(ruleOf, "it was decided for %s, and is stored in %s", uid, before.UID)
		case was.ReadyTime != nil && !was.ReadyTime.Equal(is.ReadyTime):
			c.p.Fail(ruleOutcome, "it became ready at %v, and then at %v", was.ReadyTime, is.ReadyTime)
		}
		c.p.Seen["status: "+string(is.Phase)]++
		c.p.Note("  %s: %d pods, %d running, %d ready: %s", is.Phase, is.Pods, is.Running, is.Ready, is.Conditions[0].Message)
	}
	return client.UpdateStatus(wanted, func(into, from *batchv1alpha1.PodReadinessGroup) { into.Status = from.Status })
}

func (c groupClient) Delete(context.Context, string, metav1.DeleteOptions) error {
	panic("the controller deletes a PodReadinessGroup")
}

// recorder keeps events.
type recorder struct{ p *process }

func (r recorder) Eventf(_, _ runtime.Object, _, reason, _, format string, args ...any) {
	if r.p.silent && (reason == plan.EventLabelFailed || reason == plan.EventSizeUnknown) {
		return
	}
	note := fmt.Sprintf(format, args...)
	r.p.Note("  event %s: %s", reason, note)
	r.p.Seen["events: "+reason]++
	r.p.events = append(r.p.events, event{r.p.Now(), reason, note})
}
