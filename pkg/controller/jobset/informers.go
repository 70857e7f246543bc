// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
	// indexSet is the index of pods by the name of the JobSet that is on them.
	indexSet = "set"
)

// informers are the caches that a decision is made on. They hold no more of an object than decisions use.
type informers struct {
	jobSets, jobs, services, claims cache.SharedIndexInformer
	// pods is nil unless a feature needs pods.
	pods cache.SharedIndexInformer
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
	}
	if gates.InPlaceRestart {
		i.pods = coreinformers.NewFilteredPodInformer(kube, metav1.NamespaceAll, noResync, cache.Indexers{indexSet: setOf}, ofJobSets)
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

func (i informers) all() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{i.jobSets, i.jobs, i.services, i.claims}
	if i.pods != nil {
		all = append(all, i.pods)
	}
	return all
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

// setOf indexes a pod by the name of the JobSet that is on it.
func setOf(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("indexing by set: %T is no pod", obj)
	}
	return []string{cache.NewObjectName(pod.Namespace, pod.Labels[jobsetv1alpha2.JobSetNameKey]).String()}, nil
}

// stripper returns what drops all that no decision uses, so that the caches of a large cluster stay small. It must accept
// its own results.
func stripper(gates plan.Gates) cache.TransformFunc {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *jobsetv1alpha2.JobSet:
			o.ManagedFields = nil
			// A copy of the whole manifest. A status write does not touch it.
			delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
		case *batchv1.Job:
			stripJob(o, gates)
		case *corev1.Service:
			return &corev1.Service{ObjectMeta: bareMeta(o)}, nil
		case *corev1.PersistentVolumeClaim:
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: bareMeta(o)}
			claim.Labels = usedOf(o.Labels, labelsInUse)
			return claim, nil
		case *corev1.Pod:
			return strippedPod(o), nil
		}
		return obj, nil
	}
}

func stripJob(job *batchv1.Job, gates plan.Gates) {
	meta := bareMeta(job)
	meta.Labels, meta.Annotations = usedOf(job.Labels, labelsInUse), usedOf(job.Annotations, annotationsInUse)
	meta.DeletionTimestamp = job.DeletionTimestamp
	spec := batchv1.JobSpec{Parallelism: job.Spec.Parallelism, Completions: job.Spec.Completions, Suspend: job.Spec.Suspend}
	// The pod template is compared when a Job is resumed, and at no other time.
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: job.Spec.Template.Labels, Annotations: job.Spec.Template.Annotations},
			Spec: corev1.PodSpec{
				NodeSelector:    job.Spec.Template.Spec.NodeSelector,
				Tolerations:     job.Spec.Template.Spec.Tolerations,
				SchedulingGates: job.Spec.Template.Spec.SchedulingGates,
			},
		}
		if gates.MutableResources {
			spec.Template.Spec.InitContainers = onlyResources(job.Spec.Template.Spec.InitContainers)
			spec.Template.Spec.Containers = onlyResources(job.Spec.Template.Spec.Containers)
		}
	}
	status := batchv1.JobStatus{
		Conditions: job.Status.Conditions, StartTime: job.Status.StartTime,
		Active: job.Status.Active, Ready: job.Status.Ready, Succeeded: job.Status.Succeeded,
	}
	*job = batchv1.Job{ObjectMeta: meta, Spec: spec, Status: status}
}

// strippedPod keeps what restarting in place needs; of the restarts of containers only their maximum.
func strippedPod(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{ObjectMeta: bareMeta(pod), Status: corev1.PodStatus{Phase: pod.Status.Phase}}
	kept.Labels, kept.Annotations = usedOf(pod.Labels, labelsInUse[:1]), usedOf(pod.Annotations, annotationsInUse)
	var restarts int32
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		restarts = max(restarts, container.RestartCount)
	}
	if restarts > 0 {
		kept.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: restarts}}
	}
	return kept
}

func onlyResources(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, container := range containers {
		kept = append(kept, corev1.Container{Name: container.Name, Resources: container.Resources})
	}
	return kept
}

// The labels and annotations that decisions and handlers read. A child has many more.
var (
	labelsInUse = []string{
		jobsetv1alpha2.JobSetNameKey, jobsetv1alpha2.ReplicatedJobNameKey, jobsetv1alpha2.JobIndexKey,
		jobsetv1alpha2.RestartsKey, jobsetv1alpha2.JobRestartAttemptKey,
	}
	annotationsInUse = []string{jobsetv1alpha2.ReleasedKey, jobsetv1alpha2.InPlaceRestartAttemptKey}
)

// usedOf copies what is used, under keys that all objects share. It tells nothing from an empty map.
func usedOf(all map[string]string, inUse []string) map[string]string {
	if all == nil {
		return nil
	}
	used := make(map[string]string, len(inUse))
	for _, key := range inUse {
		if value, found := all[key]; found {
			used[key] = value
		}
	}
	return used
}

func bareMeta(obj metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), OwnerReferences: obj.GetOwnerReferences(),
	}
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
