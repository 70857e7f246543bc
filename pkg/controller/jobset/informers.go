// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// Resources that are watched.
const (
	resourceJobSets  = "jobsets"
	resourceJobs     = "jobs"
	resourceServices = "services"
	resourceClaims   = "persistentvolumeclaims"
	resourcePods     = "pods"
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
	// main and own are the API servers that the caches follow: own that of JobSets.
	main, own *controller.Server
}

func newInformers(jobSets versioned.Interface, kube kubernetes.Interface, gates plan.Gates) (informers, error) {
	const ofSets = jobsetv1alpha2.JobSetNameKey
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	main := controller.NewServer("main", func(ctx context.Context) error {
		_, err := discovery.ToDiscoveryInterfaceWithContext(kube.Discovery()).ServerVersionWithContext(ctx)
		return err
	})
	own := controller.NewServer(jobsetv1alpha2.SchemeGroupVersion.String(), func(ctx context.Context) error {
		_, err := discovery.ToDiscoveryInterfaceWithContext(jobSets.Discovery()).
			ServerResourcesForGroupVersionWithContext(ctx, jobsetv1alpha2.SchemeGroupVersion.String())
		return err
	})
	i := informers{
		jobSets: newInformer(controller.NewListWatch(own, jobSets, jobSets.JobsetV1alpha2().JobSets(metav1.NamespaceAll), ""), &jobsetv1alpha2.JobSet{},
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, indexService: serviceOf}),
		jobs: newInformer(controller.NewListWatch(main, kube, kube.BatchV1().Jobs(metav1.NamespaceAll), ofSets), &batchv1.Job{},
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, indexOwner: ownerUID}),
		// The Service of a set carries no label to select by.
		services: newInformer(controller.NewListWatch(main, kube, kube.CoreV1().Services(metav1.NamespaceAll), ""), &corev1.Service{}, byNamespace),
		claims: newInformer(controller.NewListWatch(main, kube, kube.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll), ofSets),
			&corev1.PersistentVolumeClaim{}, byNamespace),
		pods: newInformer(controller.NewListWatch(main, kube, kube.CoreV1().Pods(metav1.NamespaceAll), ofSets), &corev1.Pod{}, podIndexers(gates)),
		main: main, own: own,
	}
	for _, informer := range i.all() {
		if err := informer.SetTransform(newTransform(gates)); err != nil {
			return informers{}, fmt.Errorf("setting up informers: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return informers{}, fmt.Errorf("setting up informers: %w", err)
		}
	}
	return i, nil
}

func newInformer(source cache.ListerWatcher, example runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{Indexers: indexers})
}

// unfilled returns the resources whose caches are not filled, each with why it is not if that is known.
func (i informers) unfilled() (resources []string) {
	for _, c := range []struct {
		resource string
		informer cache.SharedIndexInformer
		server   *controller.Server
	}{
		{resourceJobSets, i.jobSets, i.own}, {resourceJobs, i.jobs, i.main}, {resourceServices, i.services, i.main},
		{resourceClaims, i.claims, i.main}, {resourcePods, i.pods, i.main},
	} {
		if c.informer.HasSynced() {
			continue
		}
		if err := c.server.LastError(); err != nil {
			c.resource += fmt.Sprintf(" (%v)", err)
		}
		resources = append(resources, c.resource)
	}
	return resources
}

// run keeps the caches current until the context ends.
func (i informers) run(ctx context.Context) {
	for _, server := range []*controller.Server{i.main, i.own} {
		context.AfterFunc(ctx, server.Stop)
	}
	for _, informer := range i.all() {
		go informer.RunWithContext(ctx)
	}
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
	if name := helper.ServiceName(js); name != "" {
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
	js, err := c.informers.JobSet(key)
	if js == nil || err != nil {
		return "", false
	}
	return js.UID, true
}
