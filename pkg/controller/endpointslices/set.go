// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// set is what the cache keeps of a JobSet.
type set struct {
	namespace, name string
	uid             types.UID
	version         uint64
	// mode is the value of the annotation; empty without it.
	mode string
	// service is the name of the headless Service; empty for a set without one, and for one that another controller runs.
	service string
	// first is the host name of the pod that others look for before all: that of the coordinator, else of the first pod.
	first string
	// pods is the number of pods that run at the same time.
	pods int
	// activity is how many pods come and go.
	activity activity
	// unknown means that the server cannot read the set, and that this process has not read it before. Then the fields above are empty.
	unknown bool
	// deleted means that the set is being deleted.
	deleted bool
}

var _ metav1.ObjectMetaAccessor = &set{}

// GetObjectMeta returns what the cache needs to know of an object.
func (s *set) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.namespace, Name: s.name, UID: s.uid, ResourceVersion: strconv.FormatUint(s.version, 10)}
}

func (s *set) key() cache.ObjectName { return cache.NewObjectName(s.namespace, s.name) }

// id returns the UID of the set; empty if there is none.
func (s *set) id() types.UID {
	if s == nil {
		return ""
	}
	return s.uid
}

// isUnknown returns whether there is a set, and nothing is known of what it asks for.
func (s *set) isUnknown() bool { return s != nil && s.unknown }

// ends returns whether the set is gone or about to be.
func (s *set) ends() bool { return s == nil || s.deleted }

// mayAsk returns whether a set that asks for nothing now may do so at any time; false without a set.
func (s *set) mayAsk() bool { return s != nil && s.activity > over && s.service != "" && !s.deleted }

// object returns a reference to the set for events.
func (s *set) object() *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name, UID: s.uid},
	}
}

// sameAs reports that nothing has changed that matters here.
func (s *set) sameAs(other *set) bool {
	a, b := *s, *other
	a.version, b.version = 0, 0
	return a == b
}

// newSet returns what is kept of a JobSet.
func newSet(js *jobsetv1alpha2.JobSet) *set {
	if unreadable.Is(js) {
		s := &set{namespace: js.Namespace, name: js.Name, uid: js.UID, unknown: true}
		s.version, _ = strconv.ParseUint(js.ResourceVersion, 10, 64)
		return s
	}
	s := &set{namespace: js.Namespace, name: js.Name, uid: js.UID, mode: js.Annotations[jobsetv1alpha2.ServiceEndpointsKey],
		deleted: js.DeletionTimestamp != nil}
	s.version, _ = strconv.ParseUint(js.ResourceVersion, 10, 64) // a version that is not well-formed counts as absent
	if ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName) == jobsetv1alpha2.JobSetControllerName {
		s.service = helper.ServiceName(js)
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		s.pods += int(helper.Replicas(rj)) * podsOfJob(rj)
	}
	switch c := js.Spec.Coordinator; {
	case c != nil:
		s.first = fmt.Sprintf("%s-%d", helper.JobName(js.Name, c.ReplicatedJob, c.JobIndex), c.PodIndex)
	case len(js.Spec.ReplicatedJobs) > 0:
		s.first = helper.JobName(js.Name, js.Spec.ReplicatedJobs[0].Name, 0) + "-0"
	}
	return s
}

// podsOfJob returns the number of pods that a Job of a replicatedJob runs at the same time.
func podsOfJob(rj *jobsetv1alpha2.ReplicatedJob) int {
	spec := &rj.Template.Spec
	running := ptr.Deref(spec.Parallelism, 1)
	return int(min(running, ptr.Deref(spec.Completions, running)))
}

// serviceOf indexes a set by its Service.
func serviceOf(obj any) ([]string, error) {
	if s, ok := obj.(*set); ok && s.service != "" {
		return []string{cache.NewObjectName(s.namespace, s.service).String()}, nil
	}
	return nil, nil
}
