// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	jobsetinformers "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions/jobset/v1alpha2"
)

// Resources whose versions are tracked, each for itself.
const (
	resourceJobSets  = "jobsets"
	resourceJobs     = "jobs"
	resourceServices = "services"
	resourceClaims   = "persistentvolumeclaims"
)

const (
	// indexOwner is the index of Jobs by the UID of the JobSet that controls them.
	indexOwner = "owner"
	// indexService is the index of JobSets by the Service that they use.
	indexService = "service"
	// indexSet is the index of pods by the name of the JobSet that is on them; only if a feature needs it.
	indexSet = "set"
)

// informers are the caches that a decision is made on. They hold no more of an object than decisions use.
type informers struct {
	jobSets, jobs, services, claims, pods cache.SharedIndexInformer
}

func newInformers(jobSets versioned.Interface, kube kubernetes.Interface, gates plan.Gates) (informers, error) {
	const noResync = 0
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	ofJobSets := func(options *metav1.ListOptions) { options.LabelSelector = jobsetv1alpha2.JobSetNameKey }
	i := informers{
		jobSets: jobsetinformers.NewJobSetInformer(jobSets, metav1.NamespaceAll, noResync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, indexService: serviceOf}),
		jobs: batchinformers.NewFilteredJobInformer(kube, metav1.NamespaceAll, noResync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, indexOwner: ownerUID}, ofJobSets),
		// The Service of a set carries no label to select by.
		services: coreinformers.NewServiceInformer(kube, metav1.NamespaceAll, noResync, byNamespace),
		claims:   coreinformers.NewFilteredPersistentVolumeClaimInformer(kube, metav1.NamespaceAll, noResync, byNamespace, ofJobSets),
		pods:     coreinformers.NewFilteredPodInformer(kube, metav1.NamespaceAll, noResync, podIndexers(gates), ofJobSets),
	}
	for _, informer := range i.all() {
		if err := informer.SetTransform(stripper(gates)); err != nil {
			return informers{}, fmt.Errorf("setting up informers: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return informers{}, fmt.Errorf("setting up informers: %w", err)
		}
	}
	return i, nil
}

// podIndexers returns the indexes of pods. None is for the first cause of a failure, which is remembered by Job.
func podIndexers(gates plan.Gates) cache.Indexers {
	if gates.InPlaceRestart {
		return cache.Indexers{indexSet: setOf}
	}
	return nil
}

func (i informers) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{i.jobSets, i.jobs, i.services, i.claims, i.pods}
}

func (i informers) caches() map[string]controller.Versioned {
	return map[string]controller.Versioned{
		resourceJobSets:  i.jobSets.GetIndexer(),
		resourceJobs:     i.jobs.GetIndexer(),
		resourceServices: i.services.GetIndexer(),
		resourceClaims:   i.claims.GetIndexer(),
	}
}

// logWatchError replaces the library's handler, which logs an outage of a server as an error of this program.
func logWatchError(ctx context.Context, r *cache.Reflector, err error) {
	klog.FromContext(ctx).Info("Watch ended, trying again", "type", r.TypeDescription(), "reason", err)
}

// ownerUID indexes a child by the UID of the JobSet that controls it.
func ownerUID(obj any) ([]string, error) {
	child, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("indexing by owner: %T is no object", obj)
	}
	if owner := jobSetOwner(child); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// serviceOf indexes a JobSet by the Service that it uses.
func serviceOf(obj any) ([]string, error) {
	js, ok := obj.(*jobsetv1alpha2.JobSet)
	if !ok {
		return nil, fmt.Errorf("indexing by service: %T is no JobSet", obj)
	}
	if name := plan.ServiceName(js); name != "" {
		return []string{cache.NewObjectName(js.Namespace, name).String()}, nil
	}
	return nil, nil
}

// jobSetOwner returns the reference to the JobSet that controls the object; nil if none does.
func jobSetOwner(obj metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != "JobSet" || owner.APIVersion != jobsetv1alpha2.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}

// resolveOwner returns the name of the cached JobSet that controls the object. A JobSet of the same name but another UID
// is another set.
func (c *Controller) resolveOwner(obj metav1.Object) (cache.ObjectName, bool) {
	owner := jobSetOwner(obj)
	if owner == nil {
		return cache.ObjectName{}, false
	}
	key := cache.NewObjectName(obj.GetNamespace(), owner.Name)
	uid, found := c.uidOf(key)
	return key, found && uid == owner.UID
}

func (c *Controller) uidOf(key cache.ObjectName) (types.UID, bool) {
	js, err := c.jobSet(key)
	if js == nil || err != nil {
		return "", false
	}
	return js.UID, true
}
