// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"crypto/sha1" //nolint:gosec // a name that clients know, not a secret
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// maxRevisionPrefix is how much of the name of a set is in the names of its revisions.
const maxRevisionPrefix = 220

const (
	// maxLabelValue is the length of the longest value of a label, and hashedSuffix how much of a hash ends a name that is cut.
	maxLabelValue = 63
	hashedSuffix  = 10
)

// LeaderPodName returns the name of the leader pod of a group, which the StatefulSet of its workers has, too.
func LeaderPodName[N int | int32](set string, group N) string {
	return fmt.Sprintf("%s-%d", set, group)
}

// WorkerPodName returns the name of a worker pod; worker is from 1 to the size of the group less 1.
func WorkerPodName[N int | int32](set string, group, worker N) string {
	return fmt.Sprintf("%s-%d-%d", set, group, worker)
}

// ParentAndOrdinal splits the name of a pod of a StatefulSet: "a-b-3" is "a-b" and 3. The ordinal is -1 if there is none.
func ParentAndOrdinal(pod string) (parent string, ordinal int32) {
	i := strings.LastIndexByte(pod, '-')
	if i < 0 || i+1 == len(pod) || pod[i+1] < '0' || pod[i+1] > '9' {
		return "", -1
	}
	n, err := strconv.ParseInt(pod[i+1:], 10, 32)
	if err != nil {
		return "", -1
	}
	return pod[:i], int32(n)
}

// GroupKey returns the value of the label group-key of the pods of a group.
func GroupKey(namespace, leaderPod string) string { return hash(namespace + "/" + leaderPod) }

// SubGroupKey returns the value of the label subgroup-key of the pods of a subgroup.
func SubGroupKey(leaderPod string, index int32) string {
	return hash(leaderPod + "/" + strconv.Itoa(int(index)))
}

func hash(s string) string {
	sum := sha1.Sum([]byte(s)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// SubGroupIndex returns the index of the subgroup of a worker. The leader is in subgroup 0 unless it is excluded; where
// subGroupSize divides size less 1 and not size, it is an extra member of it.
func SubGroupIndex(size, subGroupSize, worker int32) int32 {
	switch {
	case subGroupSize < 1:
		return 0
	case (size-1)%subGroupSize == 0 && size%subGroupSize != 0:
		return (worker - 1) / subGroupSize
	}
	return worker / subGroupSize
}

// RevisionName returns the name of a ControllerRevision of a set.
func RevisionName(set, key string, number int64) string {
	return fmt.Sprintf("%s-%s-%d", set[:min(len(set), maxRevisionPrefix)], key, number)
}

// PodGroupName returns the name of the PodGroup of a group that is scheduled as a gang. revision is the key of the
// revision of its leader pod.
func PodGroupName[N int | int32](set string, group N, revision string) string {
	return fmt.Sprintf("%s-%d-%s", set, group, revision)
}

// CoschedulingName returns the name of a PodGroup, a result of PodGroupName, for the coscheduling plugin, which finds
// it by the value of a label. A name that is too long for that is cut, and ends with a hash of all of it.
func CoschedulingName(name string) string {
	if len(name) <= maxLabelValue {
		return name
	}
	return strings.TrimRight(name[:maxLabelValue-hashedSuffix-1], "-.") + "-" + hash(name)[:hashedSuffix]
}

// HPAPodSelector returns status.hpaPodSelector, which selects the leader pods of a set.
func HPAPodSelector(set string) string {
	return leaderworkersetv1.SetNameLabelKey + "=" + set + "," + leaderworkersetv1.WorkerIndexLabelKey + "=0"
}

// Subdomain returns the name of the headless Service of the pods of a group.
func Subdomain(network *leaderworkersetv1.NetworkConfig, set, leaderPod string) string {
	if UniquePerReplica(network) {
		return leaderPod
	}
	return set
}
