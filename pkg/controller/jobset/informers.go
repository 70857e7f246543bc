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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/informers"
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
type caches struct {
	jobSets, jobs, services, claims, pods cache.SharedIndexInformer
	// main and own are the API servers that the caches follow: own that of JobSets.
	main, own *informers.Server
}

func newInformers(jobSets versioned.Interface, kube kubernetes.Interface, gates gates.Gates) (caches, error) {
	const ofSets = jobsetv1alpha2.JobSetNameKey
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	main := informers.NewServer("main", func(ctx context.Context) error {
		_, err := discovery.ToDiscoveryInterfaceWithContext(kube.Discovery()).ServerVersionWithContext(ctx)
		return err
	})
	own := informers.NewServer(jobsetv1alpha2.SchemeGroupVersion.String(), func(ctx context.Context) error {
		_, err := discovery.ToDiscoveryInterfaceWithContext(jobSets.Discovery()).
			ServerResourcesForGroupVersionWithContext(ctx, jobsetv1alpha2.SchemeGroupVersion.String())
		return err
	})
	c := caches{
		jobSets: newInformer(informers.NewListWatch(own, jobSets, jobSets.JobsetV1alpha2().JobSets(metav1.NamespaceAll), ""), &jobsetv1alpha2.JobSet{},
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, indexService: serviceOf}),
		jobs: newInformer(informers.NewListWatch(main, kube, kube.BatchV1().Jobs(metav1.NamespaceAll), ofSets), &batchv1.Job{},
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, indexOwner: ownerUID}),
		// The Service of a set carries no label to select by.
		services: newInformer(informers.NewListWatch(main, kube, kube.CoreV1().Services(metav1.NamespaceAll), ""), &corev1.Service{}, byNamespace),
		claims: newInformer(informers.NewListWatch(main, kube, kube.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll), ofSets),
			&corev1.PersistentVolumeClaim{}, byNamespace),
		pods: newInformer(informers.NewListWatch(main, kube, kube.CoreV1().Pods(metav1.NamespaceAll), ofSets), &corev1.Pod{}, podIndexers(gates)),
		main: main, own: own,
	}
	for _, informer := range c.all() {
		if err := informer.SetTransform(newTransform(gates)); err != nil {
			return caches{}, fmt.Errorf("setting up informers: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return caches{}, fmt.Errorf("setting up informers: %w", err)
		}
	}
	return c, nil
}

func newInformer(source cache.ListerWatcher, example runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{Indexers: indexers})
}

// unfilled returns the resources whose caches are not filled, each with why it is not if that is known.
func (c caches) unfilled() (resources []string) {
	for _, r := range []struct {
		resource string
		informer cache.SharedIndexInformer
		server   *informers.Server
	}{
		{resourceJobSets, c.jobSets, c.own}, {resourceJobs, c.jobs, c.main}, {resourceServices, c.services, c.main},
		{resourceClaims, c.claims, c.main}, {resourcePods, c.pods, c.main},
	} {
		if r.informer.HasSynced() {
			continue
		}
		if err := r.server.LastError(); err != nil {
			r.resource += fmt.Sprintf(" (%v)", err)
		}
		resources = append(resources, r.resource)
	}
	return resources
}

// run keeps the caches current until the context ends.
func (c caches) run(ctx context.Context) {
	for _, server := range []*informers.Server{c.main, c.own} {
		context.AfterFunc(ctx, server.Stop)
	}
	for _, informer := range c.all() {
		go informer.RunWithContext(ctx)
	}
}

// podIndexers returns the indexes of pods. None is for the first cause of a failure, which is remembered by Job.
func podIndexers(gates gates.Gates) cache.Indexers {
	if gates.InPlaceRestart {
		return cache.Indexers{indexSet: setOf}
	}
	return nil
}

func (c caches) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.jobSets, c.jobs, c.services, c.claims, c.pods}
}

func (c caches) versions() map[string]consistency.Versioned {
	return map[string]consistency.Versioned{
		resourceJobSets:  c.jobSets.GetIndexer(),
		resourceJobs:     c.jobs.GetIndexer(),
		resourceServices: c.services.GetIndexer(),
		resourceClaims:   c.claims.GetIndexer(),
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
	js, err := c.caches.JobSet(key)
	if js == nil || err != nil {
		return "", false
	}
	return js.UID, true
}
