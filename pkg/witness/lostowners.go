// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// LostOwnersName is the name of the ConfigMap with LostOwners, beside the record.
	LostOwnersName = "jobset-apiserver-lost-owners"
	// MaxLostOwners is how many owners the ConfigMap lists. In 16 bytes each, they fit into it.
	MaxLostOwners = 50_000
	// maxOtherBytes bounds the UIDs that are no UUIDs.
	maxOtherBytes = 100_000
)

// Keys of the ConfigMap. The owners are binary data.
const (
	dataNewUUID  = "newUUID"
	dataRevision = "revision"
	dataMore     = "more"
	dataOwners   = "owners"
	dataOthers   = "others"
)

// uuidBytes is the size of a UUID.
const uuidBytes = len(uuid.UUID{})

// LostOwners are the owners of Jobs, StatefulSets and other objects that a refused store does not know.
type LostOwners struct {
	// NewUUID and Revision are the fields of the refusal.
	NewUUID  string
	Revision int64
	// Owners are their UIDs, without duplicates.
	Owners []types.UID
	// More says that there are others, for which there was no space.
	More bool
}

// Matches returns whether the list belongs to what the record is about: the store that is refused now, or the one that was accepted.
func (l *LostOwners) Matches(r *Record) bool {
	if r.Refusal != nil {
		return r.Refusal.NewUUID == l.NewUUID && r.Refusal.Revision == l.Revision
	}
	return r.Restored != nil && r.UUID == l.NewUUID
}

// Write puts the list into a ConfigMap, as far as there is space.
func (l *LostOwners) Write(cm *corev1.ConfigMap) {
	var owners []byte
	var others strings.Builder
	more := l.More || len(l.Owners) > MaxLostOwners
	for _, uid := range l.Owners[:min(len(l.Owners), MaxLostOwners)] {
		switch id, ok := canonical(uid); {
		case ok:
			owners = append(owners, id[:]...)
		case others.Len()+len(uid) >= maxOtherBytes || uid == "" || strings.Contains(string(uid), "\n"):
			more = true
		default:
			others.WriteString(string(uid) + "\n")
		}
	}
	cm.Data = map[string]string{
		dataNewUUID: l.NewUUID, dataRevision: strconv.FormatInt(l.Revision, 10), dataMore: strconv.FormatBool(more), dataOthers: others.String(),
	}
	cm.BinaryData = map[string][]byte{dataOwners: owners}
}

// canonical returns the bytes of a UID if it is a UUID in the form that they have when they are read.
func canonical(uid types.UID) (uuid.UUID, bool) {
	id, err := uuid.Parse(string(uid))
	return id, err == nil && id.String() == string(uid)
}

// ReadLostOwners returns the list in a ConfigMap. It returns an error that names the entry if one is malformed, and
// nothing for a ConfigMap without any of our entries, as the manifests have it: that is the same as no ConfigMap.
func ReadLostOwners(cm *corev1.ConfigMap) (*LostOwners, error) {
	if !hasAny(cm.Data, dataNewUUID, dataRevision, dataMore, dataOthers) && !hasAny(cm.BinaryData, dataOwners) {
		return nil, nil
	}
	l := &LostOwners{NewUUID: cm.Data[dataNewUUID]}
	if l.NewUUID == "" {
		return nil, malformedOwners(dataNewUUID, errors.New("must not be empty"))
	}
	var err error
	if l.Revision, err = strconv.ParseInt(cm.Data[dataRevision], 10, 64); err != nil {
		return nil, malformedOwners(dataRevision, err)
	}
	if l.More, err = strconv.ParseBool(cm.Data[dataMore]); err != nil {
		return nil, malformedOwners(dataMore, err)
	}
	owners := cm.BinaryData[dataOwners]
	if len(owners)%uuidBytes != 0 {
		return nil, malformedOwners(dataOwners, fmt.Errorf("must have %d bytes for each owner, not %d in all", uuidBytes, len(owners)))
	}
	for id := range slices.Chunk(owners, uuidBytes) {
		l.Owners = append(l.Owners, types.UID(uuid.UUID(id).String()))
	}
	for uid := range strings.Lines(cm.Data[dataOthers]) {
		l.Owners = append(l.Owners, types.UID(strings.TrimSuffix(uid, "\n")))
	}
	return l, nil
}

func malformedOwners(name string, err error) error {
	return fmt.Errorf("data[%s] of ConfigMap %s/%s: %w", name, Namespace, LostOwnersName, err)
}
