// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selfcheck describes what jobset-apiserver says about itself to administrators: its readiness, its
// certificate, its store, and whether kube-apiserver answers its questions. The server serves it as JSON below each of
// its groups, where it is authorized like a list of the resource of this name. `kubectl jobset doctor` reads it.
package selfcheck

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Resource is the last element of the path of the document, and the name of the resource of which reading it is a list.
// Discovery does not show it.
const Resource = "serverhealth"

// FeatureGates is the last element of the path of the document about feature gates. Authorization takes a GET of the path for a list of a
// resource of this name, which discovery does not show.
const FeatureGates = "featuregates"

// Document is what the server says about itself.
type Document struct {
	// Server is the name of the host or pod that answered.
	Server string `json:"server"`
	// Version is the version of the server.
	Version string `json:"version"`
	// Time is the time of the clock of the server.
	Time metav1.MicroTime `json:"time"`
	// FeatureGates are the states of the gates of the server by name.
	FeatureGates map[string]bool `json:"featureGates"`
	// Unready are the readiness checks that fail.
	Unready []Problem `json:"unready,omitempty"`
	// Certificate is the chain of certificates that the server presents to its clients, in PEM. It has no key.
	Certificate string `json:"certificate,omitempty"`
	// Embedded says that the store is in the process of the server.
	Embedded bool `json:"embedded,omitempty"`
	// Etcd are the members of the store.
	Etcd []Member `json:"etcd"`
	// Main are the questions to kube-apiserver that fail.
	Main []Problem `json:"main,omitempty"`
	// Unreadable are the first objects in the store that the server cannot read, by key, and UnreadableCount is the number of all of them.
	Unreadable      []Unreadable `json:"unreadable,omitempty"`
	UnreadableCount int          `json:"unreadableCount,omitempty"`
}

// MaxUnreadable is how many objects that cannot be read a document names.
const MaxUnreadable = 20

// Unreadable is an object in the store that the server cannot read.
type Unreadable struct {
	// Resource is the resource of the object, such as jobsets.jobset.x-k8s.io.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Key is the key of the object in etcd, and Cause says why it cannot be read.
	Key   string `json:"key"`
	Cause string `json:"cause"`
}

// Problem is something that does not work, and why.
type Problem struct {
	// Name is the name of a readiness check, or the resource that the server may not use.
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Member is one member of etcd.
type Member struct {
	// Endpoint is the address by which the server reaches it.
	Endpoint string `json:"endpoint"`
	// Error says why it did not answer. The fields below are empty then.
	Error   string `json:"error,omitempty"`
	Version string `json:"version,omitempty"`
	// Leader says that it leads the members.
	Leader bool `json:"leader,omitempty"`
	// Learner says that it has no vote yet, and NoLeader that it reaches no leader. It does not say more then than its version and its sizes.
	Learner  bool `json:"learner,omitempty"`
	NoLeader bool `json:"noLeader,omitempty"`
	// SizeBytes is the size of its file, InUseBytes the part of it that is not free, and QuotaBytes the size at which it
	// refuses writes; 0 if it does not say.
	SizeBytes  int64 `json:"sizeBytes,omitempty"`
	InUseBytes int64 `json:"inUseBytes,omitempty"`
	QuotaBytes int64 `json:"quotaBytes,omitempty"`
	// Alarms are what it complains about, such as NOSPACE.
	Alarms []string `json:"alarms,omitempty"`
	// LatencyMicroseconds is how long it took to answer.
	LatencyMicroseconds int64 `json:"latencyMicroseconds,omitempty"`
}
