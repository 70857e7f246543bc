// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// maxRemembered is the number of sizes that are remembered. Others are read again.
	maxRemembered = 10_000
	// rememberFor is the longest time for which a size is remembered.
	rememberFor = 10 * time.Minute
	// maxReads is the default of Parallel.
	maxReads = 16
)

// leaderWorkerSets is the resource of LeaderWorkerSets.
var leaderWorkerSets = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}

// Group names a group.
type Group struct {
	Namespace, Name string
	Prefix          plan.Prefix
}

// Sizes reads how many pods owners are meant to have. It reads single objects when they decide about a group, and remembers what they
// say: to watch all Jobs of a large cluster for that would cost more than a GET for each owner of the few groups.
type Sizes struct {
	kube    kubernetes.Interface
	jobSets versioned.Interface
	dynamic dynamic.Interface
	clock   clock.PassiveClock
	known   *expiring.LRUExpireCache
	// Parallel is the number of owners of a group that are read at a time. Defaults to 16.
	Parallel int
}

// NewSizes returns a reader that remembers nothing yet.
func NewSizes(kube kubernetes.Interface, jobSets versioned.Interface, dynamicClient dynamic.Interface, c clock.PassiveClock) *Sizes {
	return &Sizes{kube: kube, jobSets: jobSets, dynamic: dynamicClient, clock: c, known: expiring.NewLRUExpireCache(maxRemembered),
		Parallel: maxReads}
}

// about is what a size is about: a JobSet may have pods in several groups.
type about struct {
	Group
	owner plan.Owner
}

type remembered struct {
	size plan.OwnerSize
	at   time.Time
}

// Read returns the sizes of owners, none of them older than the age. The error is about the first owner that could not
// be read: it is part of a status, which would otherwise change from pass to pass.
func (s *Sizes) Read(ctx context.Context, group Group, owners []plan.Owner, age time.Duration) (map[plan.Owner]plan.OwnerSize, error) {
	var (
		sizes   = make(map[plan.Owner]plan.OwnerSize, len(owners))
		mu      sync.Mutex
		reading errgroup.Group
	)
	reading.SetLimit(s.Parallel)
	errs := make([]error, len(owners))
	var failed atomic.Bool
	for i, owner := range owners {
		if failed.Load() {
			break // without all of them nothing is decided, and what is refused for one is for most
		}
		key, now := about{group, owner}, s.clock.Now()
		if known, found := s.known.Get(key); found {
			if r, ok := known.(remembered); ok && now.Sub(r.at) <= age {
				mu.Lock()
				sizes[owner] = r.size
				mu.Unlock()
				continue
			}
		}
		reading.Go(func() error {
			size, err := s.read(ctx, group, owner)
			if err != nil {
				errs[i] = fmt.Errorf("reading %s %s/%s: %w", owner.Kind, group.Namespace, owner.Name, err)
				failed.Store(true)
				return nil
			}
			s.known.Add(key, remembered{size, now}, rememberFor)
			mu.Lock()
			defer mu.Unlock()
			sizes[owner] = size
			return nil
		})
	}
	if err := reading.Wait(); err != nil {
		return sizes, err
	}
	for _, err := range errs {
		if err != nil {
			return sizes, err
		}
	}
	return sizes, nil
}

// read reads one owner. One that is gone has no size.
func (s *Sizes) read(ctx context.Context, group Group, owner plan.Owner) (plan.OwnerSize, error) {
	size, err := s.ask(ctx, group, owner)
	if apierrors.IsNotFound(err) {
		return plan.OwnerSize{Unknown: true}, nil
	}
	return size, err
}

func (s *Sizes) ask(ctx context.Context, group Group, owner plan.Owner) (plan.OwnerSize, error) {
	namespace, options := group.Namespace, metav1.GetOptions{}
	switch owner.Kind {
	case plan.KindJob:
		job, err := s.kube.BatchV1().Jobs(namespace).Get(ctx, owner.Name, options)
		return sized(owner, job, err, func() int64 { return podsOfJob(&job.Spec) })
	case plan.KindJobSet:
		js, err := s.jobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, owner.Name, options)
		return sized(owner, js, err, func() int64 { return podsOfJobSet(js, group) })
	case plan.KindStatefulSet:
		set, err := s.kube.AppsV1().StatefulSets(namespace).Get(ctx, owner.Name, options)
		return sized(owner, set, err, func() int64 { return replicas(set.Spec.Replicas) })
	case plan.KindReplicaSet:
		set, err := s.kube.AppsV1().ReplicaSets(namespace).Get(ctx, owner.Name, options)
		if deployment := deploymentOf(set, err); deployment != nil && set.UID == owner.UID {
			return s.askDeployment(ctx, namespace, deployment)
		}
		return sized(owner, set, err, func() int64 { return replicas(set.Spec.Replicas) })
	case plan.KindLeaderWorkerSet:
		return s.askLeaderWorkerSet(ctx, group, owner)
	}
	return plan.OwnerSize{Unknown: true}, nil
}

func deploymentOf(set *appsv1.ReplicaSet, err error) *metav1.OwnerReference {
	if err != nil {
		return nil
	}
	ref := metav1.GetControllerOfNoCopy(set)
	if ref == nil || ref.Kind != "Deployment" || ref.APIVersion != appsv1.SchemeGroupVersion.String() {
		return nil
	}
	return ref
}

func (s *Sizes) askDeployment(ctx context.Context, namespace string, ref *metav1.OwnerReference) (plan.OwnerSize, error) {
	deployment, err := s.kube.AppsV1().Deployments(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	return sized(plan.Owner{UID: ref.UID}, deployment, err, func() int64 { return replicas(deployment.Spec.Replicas) })
}

// sized returns the size of an owner that was read. Another object of its name says nothing about its pods, and neither does an owner
// whose templates do not carry the label of the group.
func sized(owner plan.Owner, read metav1.Object, err error, pods func() int64) (plan.OwnerSize, error) {
	if err != nil {
		return plan.OwnerSize{}, err
	}
	if owner.UID != "" && read.GetUID() != owner.UID {
		return plan.OwnerSize{Unknown: true}, nil
	}
	n := pods()
	if n < 0 {
		return plan.OwnerSize{Unknown: true}, nil
	}
	return plan.OwnerSize{Root: read.GetUID(), Pods: int32(min(n, math.MaxInt32))}, nil //nolint:gosec // it is bounded
}

// unlabeled is the size of an owner whose templates do not carry the label of the group.
const unlabeled = -1

// podsOfJob is the number of pods that run at a time.
func podsOfJob(job *batchv1.JobSpec) int64 {
	pods := int64(ptr.Deref(job.Parallelism, 1))
	if job.Completions != nil {
		pods = min(pods, int64(*job.Completions))
	}
	return pods
}

// podsOfJobSet counts the pods of those replicatedJobs whose template carries the label of the group.
func podsOfJobSet(js *jobsetv1alpha2.JobSet, group Group) int64 {
	sum, found := int64(0), false
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if rj.Template.Spec.Template.Labels[group.Prefix.GroupKey] == group.Name {
			found = true
			sum += replicas(rj.Replicas) * podsOfJob(&rj.Template.Spec)
		}
	}
	if !found {
		return unlabeled
	}
	return sum
}

func replicas(n *int32) int64 { return int64(ptr.Deref(n, 1)) }

// leaderWorkerSet is what is read of a LeaderWorkerSet.
type leaderWorkerSet struct {
	Metadata struct {
		UID types.UID `json:"uid"`
	} `json:"metadata"`
	Spec struct {
		Replicas             *int32 `json:"replicas"`
		LeaderWorkerTemplate struct {
			Size           *int32                  `json:"size"`
			LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate"`
			WorkerTemplate corev1.PodTemplateSpec  `json:"workerTemplate"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

func (s *Sizes) askLeaderWorkerSet(ctx context.Context, group Group, owner plan.Owner) (plan.OwnerSize, error) {
	object, err := s.dynamic.Resource(leaderWorkerSets).Namespace(group.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return plan.OwnerSize{}, err
	}
	var set leaderWorkerSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return plan.OwnerSize{}, err
	}
	return sized(owner, object, nil, func() int64 { return set.pods(group) })
}

// pods counts the leaders and workers whose template carries the label of the group.
func (l *leaderWorkerSet) pods(group Group) int64 {
	t := &l.Spec.LeaderWorkerTemplate
	leader := t.LeaderTemplate
	if leader == nil {
		leader = &t.WorkerTemplate
	}
	carries := func(template *corev1.PodTemplateSpec) bool {
		return template.Labels[group.Prefix.GroupKey] == group.Name
	}
	perGroup := int64(0)
	if carries(leader) {
		perGroup++
	}
	if carries(&t.WorkerTemplate) {
		perGroup += max(0, replicas(t.Size)-1)
	}
	if perGroup == 0 {
		return unlabeled
	}
	return replicas(l.Spec.Replicas) * perGroup
}
