// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// answers is a cluster that has its answers ready.
type answers struct {
	sets          map[string]*jobsetv1alpha2.JobSet
	jobs          []string
	limits        []corev1.ResourceQuota
	serviceExists *corev1.Service
	claimExists   bool
	hidden        bool                   // what exists may not be read
	live          *jobsetv1alpha2.JobSet // the set that exists
	others        []string               // other objects that exist, as resource/name

	conflict error // the answer to an apply without force
	patches  []patch
	lacks    string // the answer to a pod with a service account of its own

	served    map[string][]string // the resources of versions of APIs that are served, by path
	notServed error               // the answer to the question for them

	placed    *domains.Placed // the answer to the question for domains
	notPlaced error

	gates                         gates.Gates
	noGates                       error
	lastJob                       *batchv1.Job
	set, job, pod, newClaim, list error // what is answered in place of success
	statefulSet                   error
	ofOwner                       error // the answer to a Job or a pod with an owner, which does not exist yet
	warning                       string

	mu sync.Mutex
	// asked are the names of the objects that were asked about.
	asked []string
}

func (a *answers) note(ctx context.Context, kind string, object metav1.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName() + "*"
	}
	a.asked = append(a.asked, kind+" "+name)
	if a.warning != "" {
		collector{}.HandleWarningHeaderWithContext(ctx, 299, "", kind+": "+a.warning)
	}
}

func (a *answers) place(context.Context, *jobsetv1alpha2.JobSet) (*domains.Placed, error) {
	return a.placed, a.notPlaced
}

func (a *answers) document(_ context.Context, path string, into any) error {
	list, ofAPI := into.(*metav1.APIResourceList)
	if !ofAPI {
		into.(*gatesDocument).FeatureGates = a.gates
		return a.noGates
	}
	resources, served := a.served[path]
	if a.notServed != nil {
		return a.notServed
	}
	if !served {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	for _, name := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return nil
}

func (a *answers) createStatefulSet(ctx context.Context, sts *appsv1.StatefulSet) error {
	a.note(ctx, "StatefulSet", sts)
	return a.statefulSet
}

func (a *answers) get(context.Context, cli.Kind, string, string) (*unstructured.Unstructured, error) {
	if a.live == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "jobsets"}, "train")
	}
	return encoded(a.live), nil
}

func (a *answers) create(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	a.note(ctx, kind.Title, object)
	js := a.sets[object.GetName()].DeepCopy()
	js.UID = "set-1"
	return encoded(js), a.set
}

// patch applies a merge patch as the server does, and takes an apply for the manifest as a whole.
func (a *answers) patch(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured, p patch) (*unstructured.Unstructured, error) {
	a.note(ctx, string(p.kind), object)
	a.patches = append(a.patches, p)
	switch {
	case p.kind == types.ApplyPatchType && !p.force && a.conflict != nil:
		return nil, a.conflict
	case a.set != nil:
		return nil, a.set
	case p.kind == types.ApplyPatchType:
		return object, nil
	}
	change := map[string]any{}
	if err := json.Unmarshal(p.body, &change); err != nil {
		return nil, err
	}
	next := encoded(a.live)
	mergeInto(next.Object, change)
	js := &jobsetv1alpha2.JobSet{} // decoding sets the types of numbers
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(next.Object, js); err != nil {
		return nil, err
	}
	return encoded(js), nil
}

// mergeInto is a JSON merge patch.
func mergeInto(object, change map[string]any) {
	for key, value := range change {
		inner, isObject := value.(map[string]any)
		old, wasObject := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject && wasObject:
			mergeInto(old, inner)
		default:
			object[key] = value
		}
	}
}

func (a *answers) exists(_ context.Context, resource schema.GroupVersionResource, _, name string) (bool, error) {
	if a.hidden {
		return false, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	}
	return slices.Contains(a.others, resource.Resource+"/"+name), nil
}

// encoded is the set as a server sends it.
func encoded(js *jobsetv1alpha2.JobSet) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(js)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))
	return u
}

func (a *answers) createJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	a.note(ctx, "Job", job)
	if a.ofOwner != nil && len(job.OwnerReferences) > 0 {
		return nil, a.ofOwner
	}
	job = job.DeepCopy()
	job.UID = "job-1"
	a.lastJob = job
	return job, a.job
}

func (a *answers) createPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	a.note(ctx, "Pod", pod)
	if a.ofOwner != nil && len(pod.OwnerReferences) > 0 {
		return nil, a.ofOwner
	}
	pod = pod.DeepCopy()
	if a.lacks != "" && pod.Spec.ServiceAccountName != "default" {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-w-0-0-abcde", errors.New(a.lacks))
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": list("cpu", "2")["cpu"]} // as a LimitRange would
	return pod, a.pod
}

func (a *answers) createService(ctx context.Context, service *corev1.Service) error {
	a.note(ctx, "Service", service)
	if a.serviceExists != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "services"}, service.Name)
	}
	return nil
}

func (a *answers) createClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	a.note(ctx, "Claim", claim)
	return a.newClaim
}

func (a *answers) jobNames(context.Context, string) (sets.Set[string], error) {
	return sets.New(a.jobs...), a.list
}

func (a *answers) quotas(context.Context, string) ([]corev1.ResourceQuota, error) {
	return slices.Clone(a.limits), a.list
}

func (a *answers) service(context.Context, string, string) (*corev1.Service, error) {
	if a.hidden {
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	}
	if a.serviceExists == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return a.serviceExists, nil
}

func (a *answers) claim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	if !a.claimExists {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return &corev1.PersistentVolumeClaim{}, nil
}

var _ rest.WarningHandlerWithContext = collector{}

// jobSetsOf returns the sets of a manifest.
func jobSetsOf(names ...string) (objects []object) {
	for _, name := range names {
		objects = append(objects, object{unstructuredOf(name), jobSets[0]})
	}
	return objects
}

var jobSets = []cli.For[Previewer]{{Kind: cli.JobSet, Do: JobSet}}

func unstructuredOf(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName(name)
	u.SetNamespace(builders.Namespace)
	return u
}
