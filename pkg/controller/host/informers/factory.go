// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Factory makes the informers of all kinds of one program.
type Factory struct {
	kube  kubernetes.Interface
	route Route
	main  *Server
	lost  chan error

	mu sync.Mutex
	// aggregated are the servers of API groups that the main API passes on.
	aggregated map[schema.GroupVersion]*Server
	// claimed are the groups whose objects a controller of this program runs.
	claimed sets.Set[schema.GroupVersion]
}

// NewFactory returns a factory of informers that follow the main API, and the API groups that it passes on.
func NewFactory(kube kubernetes.Interface) *Factory { return NewRoutedFactory(kube, nil) }

// NewRoutedFactory returns a factory that also asks which groups are forwarded to jobset-apiserver. Without a route, all of them count as
// forwarded.
func NewRoutedFactory(kube kubernetes.Interface, route Route) *Factory {
	f := &Factory{kube: kube, route: route, lost: make(chan error, 1), claimed: sets.New[schema.GroupVersion](),
		aggregated: map[schema.GroupVersion]*Server{}}
	f.main = newServer("main", func(ctx context.Context) error {
		_, err := discovery.ToDiscoveryInterfaceWithContext(kube.Discovery()).ServerVersionWithContext(ctx)
		return err
	})
	return f
}

// Served asks the main API for an API group and version, and for resources in it. The error is NotFound if it does not know one of them.
// Groups of CustomResourceDefinitions come and go one resource at a time.
func (f *Factory) Served(ctx context.Context, gv schema.GroupVersion, resources ...string) error {
	list, err := discovery.ToDiscoveryInterfaceWithContext(f.kube.Discovery()).ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err != nil {
		return err
	}
	for _, resource := range resources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return apierrors.NewNotFound(gv.WithResource(resource).GroupResource(), "")
		}
	}
	return nil
}

// Aggregated returns the server of an API group that the main API passes on.
func (f *Factory) Aggregated(gv schema.GroupVersion) *Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.aggregated[gv] == nil {
		f.aggregated[gv] = newServer(gv.String(), func(ctx context.Context) error { return f.Served(ctx, gv) })
		f.aggregated[gv].admit = f.admit(gv)
	}
	return f.aggregated[gv]
}

// stop lets all lists and watches that wait for their server fail.
func (f *Factory) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.main.stop()
	for _, server := range f.aggregated {
		server.stop()
	}
}

// Resource is a resource to watch.
type Resource struct {
	schema.GroupVersionResource
	example runtime.Object
	server  *Server
	source  func(label string) cache.ListerWatcher
	failure *failure
}

// NewResource returns a resource of a server, by a client for all namespaces.
func NewResource[L runtime.Object](server *Server, gvr schema.GroupVersionResource, example runtime.Object, clientSet any,
	client Client[L]) Resource {
	failure := &failure{}
	return Resource{GroupVersionResource: gvr, example: example, server: server, failure: failure,
		source: func(label string) cache.ListerWatcher {
			return newListWatch(server, clientSet, noting[L]{client, failure}, label)
		}}
}

// Main is the server of the main API.
func (f *Factory) Main() *Server { return f.main }

// Jobs are the jobs of the main API.
func (f *Factory) Jobs() Resource {
	return NewResource(f.main, batchv1.SchemeGroupVersion.WithResource("jobs"), &batchv1.Job{}, f.kube,
		f.kube.BatchV1().Jobs(metav1.NamespaceAll))
}

// Services are the Services of the main API.
func (f *Factory) Services() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("services"), &corev1.Service{}, f.kube,
		f.kube.CoreV1().Services(metav1.NamespaceAll))
}

// EndpointSlices are the EndpointSlices of the main API.
func (f *Factory) EndpointSlices() Resource {
	return NewResource(f.main, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), &discoveryv1.EndpointSlice{}, f.kube,
		f.kube.DiscoveryV1().EndpointSlices(metav1.NamespaceAll))
}

// Pods are the pods of the main API.
func (f *Factory) Pods() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("pods"), &corev1.Pod{}, f.kube,
		f.kube.CoreV1().Pods(metav1.NamespaceAll))
}

// Claims are the persistent volume claims of the main API.
func (f *Factory) Claims() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{}, f.kube,
		f.kube.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll))
}

// StatefulSets are the StatefulSets of the main API.
func (f *Factory) StatefulSets() Resource {
	return NewResource(f.main, appsv1.SchemeGroupVersion.WithResource("statefulsets"), &appsv1.StatefulSet{}, f.kube,
		f.kube.AppsV1().StatefulSets(metav1.NamespaceAll))
}

// Revisions are the ControllerRevisions of the main API.
func (f *Factory) Revisions() Resource {
	return NewResource(f.main, appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), &appsv1.ControllerRevision{}, f.kube,
		f.kube.AppsV1().ControllerRevisions(metav1.NamespaceAll))
}

// Namespaces are the namespaces of the main cluster.
func (f *Factory) Namespaces() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("namespaces"), &corev1.Namespace{}, f.kube, f.kube.CoreV1().Namespaces())
}

// Nodes are the nodes of the main cluster.
func (f *Factory) Nodes() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{}, f.kube, f.kube.CoreV1().Nodes())
}

// DaemonSets are the DaemonSets of the main API.
func (f *Factory) DaemonSets() Resource {
	return NewResource(f.main, appsv1.SchemeGroupVersion.WithResource("daemonsets"), &appsv1.DaemonSet{}, f.kube,
		f.kube.AppsV1().DaemonSets(metav1.NamespaceAll))
}

// LimitRanges are the LimitRanges of the main API.
func (f *Factory) LimitRanges() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("limitranges"), &corev1.LimitRange{}, f.kube,
		f.kube.CoreV1().LimitRanges(metav1.NamespaceAll))
}

// RuntimeClasses are the RuntimeClasses of the main API.
func (f *Factory) RuntimeClasses() Resource {
	return NewResource(f.main, nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), &nodev1.RuntimeClass{}, f.kube,
		f.kube.NodeV1().RuntimeClasses())
}

// PriorityClasses are the PriorityClasses of the main API.
func (f *Factory) PriorityClasses() Resource {
	return NewResource(f.main, schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), &schedulingv1.PriorityClass{}, f.kube,
		f.kube.SchedulingV1().PriorityClasses())
}

// Kind holds the informers of one kind.
type Kind struct {
	*Factory
	name      string
	informers []*Informer
}

// For returns a kind that needs no informer yet. Its name must differ from those of other kinds.
func (f *Factory) For(kind string) *Kind { return &Kind{Factory: f, name: kind} }

// Informer returns an informer for what the kind needs. It is of use once the watches of the kind are built.
func (k *Kind) Informer(need Need) *Informer {
	informer := &Informer{Need: need, kind: k.name}
	k.informers = append(k.informers, informer)
	return informer
}

// Unfilled returns the resources whose caches are not filled and that the kind needs, each with why it is not if that is known.
func (k *Kind) Unfilled() (resources []string) {
	for _, i := range k.informers {
		if i.HasSynced() || i.Optional && i.Refused() {
			continue
		}
		resource := i.Resource.Resource
		if err := i.failure.err(); err != nil {
			resource += fmt.Sprintf(" (%v)", err)
		}
		resources = append(resources, resource)
	}
	return resources
}

// Outdated returns the resources that could not be followed for at least that long, each with why. What their caches hold is as old.
func (k *Kind) Outdated(d time.Duration) (resources []string) {
	for _, i := range k.informers {
		if err := i.failure.lasting(d); err != nil {
			resources = append(resources, fmt.Sprintf("%s (%v)", i.Resource.Resource, err))
		}
	}
	return resources
}

// Watches are the watches of kinds that start together.
type Watches struct {
	factory *Factory
	all     []*sharedWatch
}

// Build returns the watches of kinds that start together: for each resource one for each label, or one for all
// objects if any kind needs all. A kind that starts later, for example because its API group was not served before, gets
// watches of its own, since the caches of the others do not hold all that it needs.
func (f *Factory) Build(kinds ...*Kind) (*Watches, error) {
	w := &Watches{factory: f}
	var informers []*Informer
	for _, k := range kinds {
		informers = append(informers, k.informers...)
	}
	// Those that need all objects come first.
	slices.SortStableFunc(informers, func(a, b *Informer) int { return cmp.Compare(a.watchLabel(), b.watchLabel()) })
	for _, i := range informers {
		n := slices.IndexFunc(w.all, func(w *sharedWatch) bool {
			return w.GroupVersionResource == i.GroupVersionResource && (w.label == "" || w.label == i.watchLabel())
		})
		if n < 0 {
			n, w.all = len(w.all), append(w.all, &sharedWatch{Resource: i.Resource, label: i.watchLabel()})
		}
		w.all[n].informers = append(w.all[n].informers, i)
	}
	for _, watch := range w.all {
		if err := watch.build(); err != nil {
			return nil, fmt.Errorf("setting up the watch of %s: %w", watch.Resource.Resource, err)
		}
	}
	return w, nil
}

// Start fills the caches and keeps them current until the context ends. It returns at once.
func (w *Watches) Start(ctx context.Context) {
	context.AfterFunc(ctx, w.factory.stop)
	for _, watch := range w.all {
		go watch.shared.RunWithContext(ctx)
	}
}
