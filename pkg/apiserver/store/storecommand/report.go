// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// reportVersion is the group and version of the reports of these commands. No server has it.
var reportVersion = schema.GroupVersion{Group: "store.jobset-apiserver.io", Version: "v1alpha1"}

// State is what `store status` found, in one word.
type State string

// States.
const (
	// Serving: no server refuses the store.
	Serving State = "Serving"
	// Refused: a server refuses the store.
	Refused State = "Refused"
	// Accepted: a server refuses the store, and an administrator has accepted it. The server is about to serve it.
	Accepted State = "Accepted"
	// NoWitness: no server has looked at its store yet, or a user deleted the record.
	NoWitness State = "NoWitness"
)

// exitCodes are what `store status` ends with. 1 is for errors.
var exitCodes = map[State]ExitCode{Refused: 2, Accepted: 2, NoWitness: 3}

// silence is how long ago a refusal was confirmed that no server confirms any more. Servers do so every minute.
const silence = 3 * time.Minute

// Status is the result of `store status`. The fields are an interface for scripts: their names do not change.
type Status struct {
	metav1.TypeMeta `json:",inline"`
	State           State `json:"state"`
	// UUID and Floor describe the store of this installation; empty if no store was ever served.
	UUID  string `json:"uuid,omitempty"`
	Floor int64  `json:"floor,omitempty"`
	// Refusal is what the server that refuses has found.
	Refusal *witness.Refusal `json:"refusal,omitempty"`
	// Confirmed is false if the last confirmation of the refusal is three minutes old or older, by the clock of the
	// computer that runs the command.
	Confirmed bool `json:"confirmed,omitempty"`
	// Accepted is what an administrator has accepted and no server has adopted. Effective is whether it is about the refusal.
	Accepted  *witness.Acceptance `json:"accepted,omitempty"`
	Effective bool                `json:"effective,omitempty"`
	// Restored describes the last store that was adopted because an administrator accepted it.
	Restored *witness.Restored `json:"restored,omitempty"`
	// Cluster is the cluster of embedded members that have the store, with its members as the server of the leader has seen them last.
	Cluster *witness.Cluster `json:"cluster,omitempty"`
	// lost are the members that have lost their data, if there is no majority of others.
	lost []string
	// Unreadable is set if the flags say where the store is.
	Unreadable *Unreadable `json:"unreadable,omitempty"`
}

// DeepCopyObject implements runtime.Object. A report that is printed does not change.
func (s *Status) DeepCopyObject() runtime.Object {
	copied := *s
	return &copied
}

// statusOf returns what a record says; there is none if it is nil.
func statusOf(record *witness.Record, now time.Time) *Status {
	s := &Status{TypeMeta: metav1.TypeMeta{APIVersion: reportVersion.String(), Kind: "StoreStatus"}, State: Serving}
	if record == nil {
		s.State = NoWitness
		return s
	}
	s.UUID, s.Floor, s.Refusal, s.Accepted, s.Restored = record.UUID, record.Floor, record.Refusal, record.Accepted, record.Restored
	s.Cluster = record.Cluster
	if s.lost = record.Cluster.Lost(now); len(s.lost) > 0 {
		s.State = Refused
	}
	if record.Refusal == nil {
		return s
	}
	s.State, s.Confirmed = Refused, now.Sub(record.Refusal.Time.Time) < silence
	if record.Accepts(record.Refusal) {
		s.State, s.Effective = Accepted, true
	}
	return s
}
