// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// revision is the revision of the spec of a set.
type revision struct {
	// key of it, which groups of it carry.
	key string
	// changed means that the leader StatefulSet has another one.
	changed bool
	// same is the one that exists; nil if there is none.
	same *appsv1.ControllerRevision
	// create is what has to be created for it; nil if it exists. event says why.
	create *appsv1.ControllerRevision
	event  Event
}

// revisionOf returns the revision of the spec. The one that exists is kept if it means the same, in whatever way a
// former release has written it. One that a former pass has created and could not apply is not created again.
func revisionOf(o Observed) revision {
	if o.Leader == nil {
		return revisionFor(o, "a newly created LeaderWorkerSet")
	}
	key := o.Leader.Labels[leaderworkersetv1.RevisionKey]
	if key == "" {
		return revisionFor(o, "a newly created LeaderWorkerSet")
	}
	existing := newest(o.Revisions, key)
	switch {
	case existing == nil && hasTemplate(o, key) && mayBeOf(o.Set, key):
		return missingRevision(o, key)
	case existing != nil && (o.Before.hasRevision(o, existing) || helper.SameRevision(o.Set, existing.Data.Raw)):
		return revision{key: key, same: existing}
	}
	r := revisionFor(o, "updated LWS")
	r.changed = true
	return r
}

// revisionFor returns the revision of the spec of a set whose leader StatefulSet has none or another one.
func revisionFor(o Observed, why string) revision {
	data, err := helper.RevisionPayload(o.Set)
	if err != nil {
		// No value that the server stores is without JSON.
		return revision{key: helper.RevisionKey([]byte(err.Error()))}
	}
	var same *appsv1.ControllerRevision
	for _, r := range o.Revisions {
		if helper.SameRevision(o.Set, r.Data.Raw) && (same == nil || newer(r, same)) {
			same = r
		}
	}
	if same != nil && same.Revision == highest(o.Revisions) {
		return revision{key: same.Labels[leaderworkersetv1.RevisionKey]}
	}
	key := freeKey(o.Revisions, data)
	if same != nil {
		key = same.Labels[leaderworkersetv1.RevisionKey]
	}
	return newRevision(o, data, key, fmt.Sprintf("Creating revision with key %s for %s", key, why))
}

// freeKey returns a key for a payload that no revision has. Two payloads have the same hash only if a user has searched for such payloads.
func freeKey(revisions []*appsv1.ControllerRevision, data []byte) string {
	key := helper.RevisionKey(data)
	for i := 1; newest(revisions, key) != nil; i++ {
		key = helper.RevisionKey(append(data[:len(data):len(data)], strconv.Itoa(i)...))
	}
	return key
}

// mayBeOf returns whether a key whose revision is lost may be the key of the spec: only the hash in the key is left of
// the templates of workers. Keys of former releases are no such hashes. For such a key, the result is whether the spec
// is unchanged since the controller last saw it.
func mayBeOf(set *leaderworkersetv1.LeaderWorkerSet, key string) bool {
	if !helper.IsRevisionKey(key) {
		return set.Status.ObservedGeneration == 0 || set.Status.ObservedGeneration == set.Generation
	}
	data, err := helper.RevisionPayload(set)
	return err == nil && helper.RevisionKey(data) == key
}

// missingRevision returns the revision of a set whose revision is lost: with the key that groups have.
func missingRevision(o Observed, key string) revision {
	data, err := helper.RevisionPayload(o.Set)
	if err != nil {
		return revision{key: key}
	}
	return newRevision(o, data, key, fmt.Sprintf("Creating missing revision with key %s for existing LeaderWorkerSet", key))
}

func newRevision(o Observed, data []byte, key, note string) revision {
	number := highest(o.Revisions) + 1
	create := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: helper.RevisionName(o.Set.Name, helper.RevisionKey(data), number), Namespace: o.Set.Namespace,
			Labels:          map[string]string{leaderworkersetv1.SetNameLabelKey: o.Set.Name, leaderworkersetv1.RevisionKey: key},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o.Set, setKind)},
		},
		Revision: number,
	}
	create.Data.Raw = data
	event := Event{Type: corev1.EventTypeNormal, Reason: reasonCreatingRevision, Action: ActionCreate, Note: note}
	return revision{key: key, create: create, event: event}
}

// setKind is the kind of sets.
var setKind = leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet")

// newest returns the revision with a key; the one with the highest number if there are several, nil if there is none.
func newest(revisions []*appsv1.ControllerRevision, key string) (found *appsv1.ControllerRevision) {
	for _, r := range revisions {
		if r.Labels[leaderworkersetv1.RevisionKey] == key && (found == nil || newer(r, found)) {
			found = r
		}
	}
	return found
}

// newer returns whether a is newer than b. Revisions of one number are ordered by name, so that the order of lists does not matter.
func newer(a, b *appsv1.ControllerRevision) bool {
	if a.Revision != b.Revision {
		return a.Revision > b.Revision
	}
	return a.Name > b.Name
}

// highest returns the highest number; 0 if there is no revision.
func highest(revisions []*appsv1.ControllerRevision) (n int64) {
	for _, r := range revisions {
		n = max(n, r.Revision)
	}
	return n
}

// Reading is what a decision has found out about large objects, so that the next one need not read them again. Objects
// of caches never change, so that the same pointers have the same content. Decisions are the same without it.
type Reading struct {
	// Revision means the same as the spec of Set; nil if no revision is known to.
	Set      *leaderworkersetv1.LeaderWorkerSet
	Revision *appsv1.ControllerRevision
	// Leader has what Applied is the hash of, which follows from Set, Key, Partition and Replicas; nil if it is not known to.
	Leader              *appsv1.StatefulSet
	Applied, Key        string
	Partition, Replicas int32
}

// hasRevision returns whether a revision is known to mean the same as the spec of the set.
func (r *Reading) hasRevision(o Observed, revision *appsv1.ControllerRevision) bool {
	return r != nil && r.Set == o.Set && r.Revision != nil && r.Revision == revision
}

// hasLeader returns whether the leader StatefulSet is known to be right.
func (r *Reading) hasLeader(o Observed, key string, t target) bool {
	return r != nil && r.Set == o.Set && r.Leader != nil && r.Leader == o.Leader && r.Applied == o.Applied && r.Key == key &&
		r.Partition == t.partition && r.Replicas == t.count
}
