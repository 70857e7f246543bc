// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"fmt"
	"strings"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// Resources that are watched.
const (
	resourceSequentialJobs = "sequentialjobs"
	resourceJobs           = "jobs"
	resourceJobSets        = "jobsets"
)

// indexOwner is the index of children by the UID of the sequence that controls them.
const indexOwner = "owner"

// caches are what a decision is made on. They hold no more of an object than decisions use.
type caches struct {
	sequentialJobs, jobs, jobSets, pods *informers.Informer
	// Memory knows why the Job controller cannot create pods.
	*refusals.Memory
}

var _ Caches = caches{}

// newCaches declares what SequentialJobs need.
func newCaches(kind *informers.Kind, client versioned.Interface, clock clock.PassiveClock) caches {
	sequences := informers.NewResource(kind.Aggregated(batchv1alpha1.SchemeGroupVersion),
		batchv1alpha1.SchemeGroupVersion.WithResource(resourceSequentialJobs),
		&batchv1alpha1.SequentialJob{}, client, client.BatchV1alpha1().SequentialJobs(metav1.NamespaceAll))
	sets := informers.NewResource(kind.Aggregated(jobsetv1alpha2.SchemeGroupVersion),
		jobsetv1alpha2.SchemeGroupVersion.WithResource(resourceJobSets),
		&jobsetv1alpha2.JobSet{}, client, client.JobsetV1alpha2().JobSets(metav1.NamespaceAll))
	children := func(resource informers.Resource, unlabeled bool) *informers.Informer {
		return kind.Informer(informers.Need{
			Resource: resource, Label: batchv1alpha1.SequentialJobUIDKey, Unlabeled: unlabeled, Transform: transform,
			Indexers: cache.Indexers{indexOwner: ownerUID},
		})
	}
	return caches{
		sequentialJobs: kind.Informer(informers.Need{Resource: sequences, Transform: transform}),
		jobs:           children(kind.Jobs(), false),
		jobSets:        children(sets, true),
		pods: kind.Informer(informers.Need{
			Resource: kind.Pods(), Label: batchv1alpha1.SequentialJobUIDKey, Transform: transform,
			Indexers: cache.Indexers{indexUnschedulable: unschedulableOf},
		}),
		Memory: refusals.New(kind, "Job", clock),
	}
}

func (c caches) versions() map[string]consistency.Versioned {
	return map[string]consistency.Versioned{resourceSequentialJobs: c.sequentialJobs, resourceJobs: c.jobs, resourceJobSets: c.jobSets}
}

// SequentialJob returns the cached sequence; nil if there is none.
func (c caches) SequentialJob(key cache.ObjectName) (*batchv1alpha1.SequentialJob, error) {
	return informers.ByKey[batchv1alpha1.SequentialJob](c.sequentialJobs, key)
}

// Children returns the cached Jobs and JobSets that the sequence controls.
func (c caches) Children(sj *batchv1alpha1.SequentialJob) (owned []plan.Child, err error) {
	for _, informer := range []*informers.Informer{c.jobs, c.jobSets} {
		objs, err := informer.ByIndex(indexOwner, string(sj.UID))
		if err != nil {
			return nil, fmt.Errorf("listing children of sequentialjob %s/%s: %w", sj.Namespace, sj.Name, err)
		}
		for _, obj := range objs {
			if child, ok := obj.(*watchedChild); ok && child.namespace.Value() == sj.Namespace {
				owned = append(owned, child.Child)
			}
		}
	}
	return owned, nil
}

// watchedChild is what the cache keeps of a child.
type watchedChild struct {
	plan.Child
	namespace unique.Handle[string]
	// sequence is the name of the SequentialJob that controls it, as a rule a part of the memory of its own name.
	sequence string
	owner    types.UID
}

var _ metav1.ObjectMetaAccessor = &watchedChild{}

// GetObjectMeta returns what the cache needs to know of an object.
func (w *watchedChild) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: w.Name, Namespace: w.namespace.Value(), UID: w.UID, ResourceVersion: w.ResourceVersion}
}

func newWatchedChild(obj metav1.Object, child plan.Child) *watchedChild {
	kept := &watchedChild{Child: child, namespace: unique.Make(obj.GetNamespace())}
	if owner := sequenceOf(obj); owner != nil {
		kept.owner, kept.sequence = owner.UID, owner.Name
		if strings.HasPrefix(kept.Name, owner.Name) {
			kept.sequence = kept.Name[:len(owner.Name)]
		}
	}
	return kept
}

// transform drops what no decision uses, so that the caches of a large cluster stay small. It accepts its own results.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *batchv1alpha1.SequentialJob:
		o.ManagedFields = nil
		// A copy of the whole manifest. A status write does not touch it.
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
	case *batchv1.Job:
		return newWatchedChild(o, plan.ChildOfJob(o)), nil
	case *corev1.Pod:
		return newWatchedPod(o), nil
	case *jobsetv1alpha2.JobSet:
		return newWatchedChild(o, plan.ChildOfJobSet(o)), nil
	}
	return obj, nil
}

// ownerUID indexes a child by the UID of the sequence that controls it.
func ownerUID(obj any) ([]string, error) {
	child, ok := obj.(*watchedChild)
	if !ok {
		return nil, fmt.Errorf("indexing by owner: %T is no child", obj)
	}
	if child.owner == "" {
		return nil, nil
	}
	return []string{string(child.owner)}, nil
}

// sequenceOf returns the reference to the sequence that controls the object; nil if none does.
func sequenceOf(obj metav1.Object) *metav1.OwnerReference {
	return informers.OwnerOf(obj, batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob"))
}
