// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace and Name identify the ConfigMap. It is not in the namespace of the installation, because deleting that must not delete it.
const (
	Namespace = "kube-system"
	Name      = "jobset-apiserver-store"
)

// Keys of the data of the ConfigMap. All but dataUUID and dataFloor hold JSON and are optional.
const (
	dataUUID     = "uuid"
	dataFloor    = "floor"
	dataRefusal  = "refusal"
	dataAccepted = "accepted"
	dataRestored = "restored"
	dataGroups   = "groups"
	dataCluster  = "cluster"
)

// Record is the half of the witness in the main cluster.
type Record struct {
	// UUID identifies the store of this installation. It is empty as long as no store was adopted: the first server that looked has refused.
	UUID string
	// Floor is the revision that the key in etcd has at least.
	Floor int64
	// Refusal is what the last server that refuses to serve has found; nil when none refuses.
	Refusal *Refusal
	// Accepted is what an administrator has accepted and no server has adopted yet.
	Accepted *Acceptance
	// Restored describes the last store that was adopted because an administrator accepted it.
	Restored *Restored
	// Groups are the API groups that may be served in this cluster. Older versions do not write them.
	Groups Groups
	// Cluster is the cluster of embedded members that have the store; nil if it is a single one, or an external etcd.
	Cluster *Cluster
}

// Cluster is a cluster of embedded members of etcd.
type Cluster struct {
	// ID is what etcd calls the cluster, in hexadecimal digits. It does not change while the cluster exists.
	ID string `json:"id"`
	// Members are the members by name, as the server of the leader sees them. Only a report for people uses them: etcd itself decides who
	// is a member.
	Members []Member `json:"members,omitempty"`
	// Empty are the members that have an empty data directory and cannot join the others, because too few of these answer.
	Empty []EmptyMember `json:"empty,omitempty"`
}

// EmptyMember is a member with an empty data directory.
type EmptyMember struct {
	Name string `json:"name"`
	// Time is when it looked for the others last. It writes that every 30 seconds.
	Time metav1.Time `json:"time"`
}

// emptyFor is for how long an empty member counts after it has looked for the others.
const emptyFor = 2 * time.Minute

// Lost returns the names of the members that have lost their data, if these are two of the three or all of them: the others are no
// majority.
func (c *Cluster) Lost(now time.Time) (names []string) {
	if c == nil {
		return nil
	}
	for _, empty := range c.Empty {
		if now.Sub(empty.Time.Time) < emptyFor {
			names = append(names, empty.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	slices.Sort(names)
	return names
}

// Note notes that a member is empty, and forgets those that have not looked for the others for a while.
func (c *Cluster) Note(name string, now time.Time) {
	c.Empty = slices.DeleteFunc(slices.Clone(c.Empty), func(e EmptyMember) bool { return e.Name == name || now.Sub(e.Time.Time) >= emptyFor })
	c.Empty = append(c.Empty, EmptyMember{name, metav1.NewTime(now)})
}

// Member is a member of a cluster.
type Member struct {
	// Name is the name of the pod that runs the member, and ID what etcd calls the member, in hexadecimal digits. A member whose data were
	// lost is replaced by one with another ID.
	Name string `json:"name"`
	ID   string `json:"id"`
	// Learner means that the member receives the data of the others and has no vote yet.
	Learner bool `json:"learner,omitempty"`
}

// NewCluster returns nil without an ID.
func NewCluster(id string) *Cluster {
	if id == "" {
		return nil
	}
	return &Cluster{ID: id}
}

// Equal returns whether both are the same cluster, or none.
func (c *Cluster) Equal(other *Cluster) bool {
	return c == other || c != nil && other != nil && c.ID == other.ID
}

// With returns the same cluster with these members, none of which is empty.
func (c *Cluster) With(members []Member) *Cluster { return &Cluster{ID: c.ID, Members: members} }

// String returns the ID.
func (c *Cluster) String() string {
	if c == nil {
		return "no cluster of embedded members"
	}
	return "cluster " + c.ID
}

// Refusal is why a server refuses to serve.
type Refusal struct {
	Reason Reason `json:"reason"`
	// Message is a paragraph for the administrator: what was found, what would be deleted, and what to do.
	Message string `json:"message"`
	// Server is the host name of the server, and Time when it confirmed the refusal last. It does so every minute.
	Server string      `json:"server"`
	Time   metav1.Time `json:"time"`
	// NewUUID and Revision name what is found: a UUID proposed for the store, and the revision of the key in it (0 without a key).
	// An acceptance repeats both, so that it holds for this store in this state only.
	NewUUID  string `json:"newUUID"`
	Revision int64  `json:"revision"`
	// Served says that this server served the store before it noticed: owners may have been reported missing.
	Served bool `json:"served,omitempty"`
	// JobsAtStake is the number of Jobs whose owners the store does not know, which the garbage collector would delete; -1 if it is
	// not known. Jobs names some of them as <namespace>/<name>, at most MaxJobs.
	JobsAtStake int      `json:"jobsAtStake"`
	Jobs        []string `json:"jobs,omitempty"`
	// ClaimsAtStake is the same number for PersistentVolumeClaims that go with their sets.
	ClaimsAtStake int `json:"claimsAtStake,omitempty"`
	// AtStake counts the same for all resources, Jobs and claims included. Older servers do not write it: see Losses.
	AtStake []Loss `json:"atStake,omitempty"`
	// Groups are the API groups that the server refuses to serve, while it serves its other groups. It is empty if the server refuses the
	// whole store.
	Groups []string `json:"groups,omitempty"`
}

// MaxJobs is how many Jobs a refusal names.
const MaxJobs = 20

// Acceptance is what an administrator accepts.
type Acceptance struct {
	NewUUID  string `json:"newUUID"`
	Revision int64  `json:"revision"`
	// AbandonJobs also accepts that the garbage collector deletes the Jobs whose owners are unknown.
	AbandonJobs bool `json:"abandonJobs,omitempty"`
}

// Restored describes a store that was adopted after an acceptance.
type Restored struct {
	// Revision is the revision of the store when it was adopted: objects with this or a lower resource version have not changed since.
	Revision int64       `json:"revision"`
	Time     metav1.Time `json:"time"`
}

// Concerns returns whether an API group is not served because of the refusal.
func (r *Refusal) Concerns(group string) bool {
	return r != nil && (len(r.Groups) == 0 || slices.Contains(r.Groups, group))
}

// Adopted returns whether the installation has a store. A record without one has only the refusal of the first server that looked.
func (r *Record) Adopted() bool { return r != nil && r.UUID != "" }

// Accepts returns whether the administrator has accepted what the refusal has found.
func (r *Record) Accepts(refusal *Refusal) bool {
	a := r.Accepted
	return a != nil && a.NewUUID == refusal.NewUUID && a.Revision == refusal.Revision
}

// Read returns the record in a ConfigMap. It returns an error that names the entry if one is malformed, and nothing for
// a ConfigMap without any of our entries, as the manifests have it: that is the same as no ConfigMap.
func Read(cm *corev1.ConfigMap) (*Record, error) {
	if !hasAny(cm.Data, dataUUID, dataFloor, dataRefusal, dataAccepted, dataRestored) {
		return nil, nil
	}
	r := &Record{UUID: cm.Data[dataUUID]}
	if _, refused := cm.Data[dataRefusal]; r.UUID == "" && !refused {
		return nil, malformed(dataUUID, fmt.Errorf("must not be empty"))
	}
	var err error
	if r.Floor, err = strconv.ParseInt(cm.Data[dataFloor], 10, 64); err != nil {
		return nil, malformed(dataFloor, err)
	}
	for name, into := range map[string]any{dataRefusal: &r.Refusal, dataAccepted: &r.Accepted, dataRestored: &r.Restored,
		dataGroups: &r.Groups, dataCluster: &r.Cluster} {
		if value, ok := cm.Data[name]; ok {
			if err := json.Unmarshal([]byte(value), into); err != nil {
				return nil, malformed(name, err)
			}
		}
	}
	return r, nil
}

func hasAny[V any](entries map[string]V, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, found := entries[name]; return found })
}

func malformed(name string, err error) error {
	return fmt.Errorf("data[%s] of ConfigMap %s/%s: %w", name, Namespace, Name, err)
}

// Write puts the record into the data of a ConfigMap and leaves other entries alone.
func (r *Record) Write(cm *corev1.ConfigMap) error {
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[dataUUID], cm.Data[dataFloor] = r.UUID, strconv.FormatInt(r.Floor, 10)
	for name, entry := range map[string]any{dataRefusal: r.Refusal, dataAccepted: r.Accepted, dataRestored: r.Restored,
		dataGroups: r.Groups, dataCluster: r.Cluster} {
		value, err := json.Marshal(entry)
		if err != nil {
			return malformed(name, err)
		}
		if string(value) == "null" {
			delete(cm.Data, name)
			continue
		}
		cm.Data[name] = string(value)
	}
	return nil
}
