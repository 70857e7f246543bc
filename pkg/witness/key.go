// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// KeyName is the name of the key below the prefix of the server in etcd, beside the groups.
const KeyName = "store-witness"

// Format is the layout of the data that this version writes. It grows when an older version could not read it any more.
const Format = 1

// Key is the half of the witness in etcd.
type Key struct {
	// UUID names the store. It is random.
	UUID string `json:"uuid"`
	// ClusterUID is the UID of the namespace kube-system of the cluster to which the store belongs.
	ClusterUID types.UID `json:"clusterUID"`
	// Format is the layout of the data.
	Format int `json:"format"`
	// Version is the version of the server that wrote the key last.
	Version string `json:"version"`
	// Behind is a revision that this store had, as a server has seen that then found it at a lower one: it is a copy, and the floor is too old
	// to show it. Such a store has to be accepted.
	Behind int64 `json:"behind,omitempty"`
	// Groups are the API groups that may be served from this store. Older versions do not write them.
	Groups Groups `json:"groups,omitzero"`
}

// Found is a key as it was read.
type Found struct {
	Key
	// ModRevision is the revision at which the key was written last.
	ModRevision int64
	// Revision is the revision of the store when the key was read.
	Revision int64
}

// Encode returns the value to store.
func (k *Key) Encode() []byte {
	value, err := json.Marshal(k)
	if err != nil { // strings and numbers only
		panic(err)
	}
	return value
}

// DecodeKey reads a stored value. It returns an error if the value is not a key.
func DecodeKey(value []byte) (Key, error) {
	var k Key
	if err := json.Unmarshal(value, &k); err != nil {
		return Key{}, fmt.Errorf("decoding the key of the witness: %w", err)
	}
	if k.UUID == "" {
		return Key{}, errors.New("decoding the key of the witness: it has no uuid")
	}
	return k, nil
}
