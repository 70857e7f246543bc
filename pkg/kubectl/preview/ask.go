// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// cluster is what a preview asks. All creations are dry runs, which store nothing. Warnings go to the list of the context.
type cluster interface {
	// document reads a document of the API server.
	document(ctx context.Context, path string, into any) error
	// get reads an object of the cluster.
	get(ctx context.Context, kind cli.Kind, namespace, name string) (*unstructured.Unstructured, error)
	// create creates an object of a manifest and returns what the server would store.
	create(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// patch changes the object of the manifest in the cluster and returns what the server would store.
	patch(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured, p patch) (*unstructured.Unstructured, error)
	// exists returns whether the namespace has an object of the resource. Nothing but its metadata is read.
	exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error)
	createJob(context.Context, *batchv1.Job) (*batchv1.Job, error)
	createPod(context.Context, *corev1.Pod) (*corev1.Pod, error)
	createService(context.Context, *corev1.Service) error
	createStatefulSet(context.Context, *appsv1.StatefulSet) error
	createClaim(context.Context, *corev1.PersistentVolumeClaim) error
	// jobNames are the names of all Jobs of a namespace.
	jobNames(ctx context.Context, namespace string) (sets.Set[string], error)
	quotas(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error)
	service(ctx context.Context, namespace, name string) (*corev1.Service, error)
	claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// place returns the domains that the Jobs of a set with exclusive placement would get; nil if none need any.
	place(ctx context.Context, js *jobsetv1alpha2.JobSet) (*domains.Placed, error)
}

// live is a real cluster.
type live struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	objects metadata.Interface
}

// dryRun asks for everything that a creation does but storing. Unknown fields are refused, as kubectl has it.
var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "kubectl-jobset",
	FieldValidation: metav1.FieldValidationStrict}

func newLive(c *cli.Clients) (*live, error) {
	config := rest.CopyConfig(c.Config)
	config.WarningHandler, config.WarningHandlerWithContext = nil, collector{}
	var out live
	var err error
	if out.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if out.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	out.objects, err = metadata.NewForConfig(config)
	return &out, err
}

func (l *live) document(ctx context.Context, path string, into any) error {
	content, err := l.kube.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

func (l *live) resource(kind cli.Kind, version schema.GroupVersion, namespace string) dynamic.ResourceInterface {
	return l.dynamic.Resource(version.WithResource(kind.Names[1])).Namespace(namespace)
}

func (l *live) get(ctx context.Context, kind cli.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	return l.resource(kind, kind.GroupVersion, namespace).Get(ctx, name, metav1.GetOptions{})
}

func (l *live) create(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return l.resource(kind, object.GroupVersionKind().GroupVersion(), object.GetNamespace()).Create(ctx, object, dryRun)
}

func (l *live) patch(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured, p patch) (*unstructured.Unstructured, error) {
	options := metav1.PatchOptions{DryRun: dryRun.DryRun, FieldManager: p.manager, FieldValidation: dryRun.FieldValidation}
	if p.kind == types.ApplyPatchType {
		options.Force = ptr.To(p.force)
	}
	return l.resource(kind, object.GroupVersionKind().GroupVersion(), object.GetNamespace()).Patch(ctx, object.GetName(), p.kind, p.body,
		options)
}

func (l *live) exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	_, err := l.objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (l *live) createJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	return l.kube.BatchV1().Jobs(job.Namespace).Create(ctx, job, dryRun)
}

func (l *live) createPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return l.kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, dryRun)
}

func (l *live) createService(ctx context.Context, service *corev1.Service) error {
	_, err := l.kube.CoreV1().Services(service.Namespace).Create(ctx, service, dryRun)
	return err
}

func (l *live) createStatefulSet(ctx context.Context, sts *appsv1.StatefulSet) error {
	_, err := l.kube.AppsV1().StatefulSets(sts.Namespace).Create(ctx, sts, dryRun)
	return err
}

func (l *live) createClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := l.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, dryRun)
	return err
}

func (l *live) jobNames(ctx context.Context, namespace string) (sets.Set[string], error) {
	jobs, err := l.objects.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	names := sets.New[string]()
	for i := range jobs.Items {
		names.Insert(jobs.Items[i].Name)
	}
	return names, nil
}

func (l *live) quotas(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
	list, err := l.kube.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	return list.Items, nil
}

func (l *live) service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return l.kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (l *live) claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return l.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// warnings are the warnings that came with one answer.
type warnings struct {
	mu   sync.Mutex
	list []string
}

type warningsKey struct{}

// withWarnings returns a context whose requests leave their warnings in the list.
func withWarnings(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// collector puts warnings into the list of the context.
type collector struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (collector) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if w, ok := ctx.Value(warningsKey{}).(*warnings); ok && code == 299 && text != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.list = append(w.list, text)
	}
}
