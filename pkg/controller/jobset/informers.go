// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// Resources that are watched.
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
	// indexUnschedulable is the index of those pods for which the scheduler finds no node, by the name of the JobSet that is on them.
	indexUnschedulable = "unschedulable"
	// indexLanded is the index of pods on nodes by the UID of their Job, if the scheduler chose its topology domain.
	indexLanded = "landed"
	// indexPlacement is the index of JobSets by what they have to do with exclusive placement: placed and asking, or one of both.
	indexPlacement = "placement"
	// indexGroups is the index of JobSets with groups of pods: grouped, and also asking until they have finished.
	indexGroups = "groups"
)

// grouped is a value of indexGroups, beside asking.
const grouped = "grouped"

// Values of indexPlacement.
const (
	// placed sets hold topology domains.
	placed = "placed"
	// asking sets have Jobs with exclusive placement.
	asking = "asking"
)

// caches are what a decision is made on. They hold no more of an object than decisions use.
type caches struct {
	jobSets, jobs, services, claims, pods *informers.Informer
	// priorities are PriorityClasses; nil without exclusive placement. They may be unknown: sets that do not ask for placement run without.
	priorities *informers.Informer
	// Memory knows why the Job controller cannot create pods.
	*refusals.Memory
	// inPlace counts how far pods have come with restarting where they are; nil without the feature gate.
	inPlace *inplace.Tally
}

// newCaches declares what JobSets need.
func newCaches(kind *informers.Kind, jobSets versioned.Interface, gates gates.Gates, clock clock.PassiveClock) caches {
	const ofSets = jobsetv1alpha2.JobSetNameKey
	need := func(resource informers.Resource, label string, indexers cache.Indexers) *informers.Informer {
		return kind.Informer(informers.Need{Resource: resource, Label: label, Transform: newTransform(gates), Indexers: indexers})
	}
	sets := informers.NewResource(kind.Aggregated(jobsetv1alpha2.SchemeGroupVersion),
		jobsetv1alpha2.SchemeGroupVersion.WithResource(resourceJobSets),
		&jobsetv1alpha2.JobSet{}, jobSets, jobSets.JobsetV1alpha2().JobSets(metav1.NamespaceAll))
	ofJobSets := cache.Indexers{indexService: serviceOf}
	if gates.ExclusivePlacement {
		ofJobSets[indexPlacement] = placementOf
	}
	if gates.JobSetWorkloadAwareSchedulingAPI {
		ofJobSets[indexGroups] = groupingOf
	}
	c := caches{
		jobSets:  need(sets, "", ofJobSets),
		jobs:     need(kind.Jobs(), ofSets, cache.Indexers{indexOwner: ownerUID}),
		services: need(kind.Services(), "", nil), // the Service of a set carries no label to select by
		claims:   need(kind.Claims(), ofSets, nil),
		pods:     need(kind.Pods(), ofSets, podIndexers(gates)),

		Memory: refusals.New(kind, "Job", clock),
	}
	if gates.InPlaceRestart {
		c.inPlace = inplace.New()
	}
	if gates.ExclusivePlacement {
		c.priorities = kind.Informer(informers.Need{Resource: kind.PriorityClasses(), Transform: newTransform(gates), Optional: true})
	}
	return c
}

// podIndexers returns the indexes of pods. None is for the first cause of a failure, which is remembered by Job.
func podIndexers(gates gates.Gates) cache.Indexers {
	indexers := cache.Indexers{indexUnschedulable: unschedulableOf}
	if gates.ExclusivePlacement {
		indexers[indexLanded] = landedOf
	}
	return indexers
}

func (c caches) versions() map[string]consistency.Versioned {
	return map[string]consistency.Versioned{
		resourceJobSets:  c.jobSets,
		resourceJobs:     c.jobs,
		resourceServices: c.services,
		resourceClaims:   c.claims,
	}
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
	return informers.OwnerOf(obj, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))
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
