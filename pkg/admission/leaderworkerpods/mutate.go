// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderworkerpods completes the pods of LeaderWorkerSets when they are created, with all that depends on the
// name of a pod and so cannot be in the template of a StatefulSet: the labels with its group and its index, affinity to
// its group or subgroup, and the environment of its containers (docs/reference/leaderworkerset.md#labels).
//
// What it does follows from the pod alone. Doing it twice is the same as doing it once.
package leaderworkerpods

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// leaderIndex is the index of a leader in its group.
const leaderIndex = "0"

// member is a pod of a group.
type member struct {
	*corev1.Pod
	namespace string
	// set is the name of its set.
	set string
	// size is the number of pods of the group.
	size int32
	// leads means that the pod is the leader.
	leads bool
	// leader is the name of the leader pod, and index the index of the pod in its group.
	leader string
	index  int32
}

// Mutate completes a pod that is being created in a namespace. A pod without the label of a set stays as it is. After
// an error the pod is incomplete and must not be created.
func Mutate(pod *corev1.Pod, namespace string) error {
	set, found := pod.Labels[leaderworkersetv1.SetNameLabelKey]
	if !found {
		return nil
	}
	m, err := newMember(pod, namespace, set)
	if err != nil {
		return err
	}
	if m.leads {
		err = m.completeLeader()
	} else {
		err = m.completeWorker()
	}
	if err != nil {
		return err
	}
	if err := m.joinGang(); err != nil {
		return err
	}
	if err := m.addTPUEnvironment(); err != nil {
		return err
	}
	return m.addEnvironment()
}

func newMember(pod *corev1.Pod, namespace, set string) (*member, error) {
	m := &member{Pod: pod, namespace: namespace, set: set, leads: pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] == leaderIndex}
	if set == "" {
		return nil, fmt.Errorf("label %s must be the name of a LeaderWorkerSet, it is empty", leaderworkersetv1.SetNameLabelKey)
	}
	size, err := m.positive(leaderworkersetv1.SizeAnnotationKey)
	if err != nil {
		return nil, fmt.Errorf("%w; pods with the label %s belong to a LeaderWorkerSet, whose controller sets the annotation: remove the "+
			"label from any other pod",
			err, leaderworkersetv1.SetNameLabelKey)
	}
	m.size = size
	return m, nil
}

// completeLeader derives what a leader needs from its own name.
func (m *member) completeLeader() error {
	m.leader = m.Name
	if m.Labels[leaderworkersetv1.GroupIndexLabelKey] == "" {
		_, group := helper.ParentAndOrdinal(m.Name)
		if group < 0 {
			return m.unnumbered()
		}
		m.label(leaderworkersetv1.GroupIndexLabelKey, strconv.Itoa(int(group)))
	}
	if m.Annotations[leaderworkersetv1.SubdomainPolicyAnnotationKey] == string(leaderworkersetv1.SubdomainUniquePerReplica) {
		m.Spec.Subdomain = m.Name
	}
	if m.Labels[leaderworkersetv1.GroupKeyLabelKey] == "" {
		m.label(leaderworkersetv1.GroupKeyLabelKey, helper.GroupKey(m.namespace, m.Name))
	}
	if topology := m.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]; topology != "" {
		m.requireExclusive(topology, leaderworkersetv1.GroupKeyLabelKey)
	}
	if m.Annotations[leaderworkersetv1.SubGroupPolicyTypeAnnotationKey] == string(leaderworkersetv1.SubGroupPolicyLeaderExcluded) {
		return nil
	}
	return m.joinSubGroup()
}

// completeWorker derives the index of a worker from its name. The template of its StatefulSet has the rest.
func (m *member) completeWorker() error {
	parent, ordinal := helper.ParentAndOrdinal(m.Name)
	if ordinal < 0 {
		return m.unnumbered()
	}
	m.index, m.leader = ordinal, m.Annotations[leaderworkersetv1.LeaderPodNameAnnotationKey]
	if m.leader == "" {
		m.leader = parent
	}
	m.label(leaderworkersetv1.WorkerIndexLabelKey, strconv.Itoa(int(ordinal)))
	return m.joinSubGroup()
}

// joinSubGroup puts the pod into its subgroup, if it has one and is in none.
func (m *member) joinSubGroup() error {
	if _, found := m.Annotations[leaderworkersetv1.SubGroupSizeAnnotationKey]; !found {
		return nil
	}
	if _, found := m.Labels[leaderworkersetv1.SubGroupIndexLabelKey]; found {
		return nil
	}
	size, err := m.positive(leaderworkersetv1.SubGroupSizeAnnotationKey)
	if err != nil {
		return err
	}
	var index int32
	if !m.leads {
		index = helper.SubGroupIndex(m.size, size, m.index)
	}
	m.label(leaderworkersetv1.SubGroupIndexLabelKey, strconv.Itoa(int(index)))
	m.label(leaderworkersetv1.SubGroupKeyLabelKey, helper.SubGroupKey(m.leader, index))
	if topology := m.Annotations[leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey]; topology != "" {
		m.requireExclusive(topology, leaderworkersetv1.SubGroupKeyLabelKey)
	}
	return nil
}

// joinGang names the PodGroup of the group, if groups of the set are scheduled as gangs.
func (m *member) joinGang() error {
	gang, found := m.Annotations[leaderworkersetv1.GangAnnotationKey]
	if !found {
		return nil
	}
	group, revision := m.Labels[leaderworkersetv1.GroupIndexLabelKey], m.Labels[leaderworkersetv1.RevisionKey]
	if group == "" || revision == "" {
		return fmt.Errorf("a pod with the annotation %s must have the labels %s and %s, they are %q and %q", leaderworkersetv1.GangAnnotationKey,
			leaderworkersetv1.GroupIndexLabelKey, leaderworkersetv1.RevisionKey, group, revision)
	}
	name := m.set + "-" + group + "-" + revision
	switch gang {
	case leaderworkersetv1.GangVolcano:
		m.Annotations[leaderworkersetv1.PodGroupNameAnnotationKey] = name
	case leaderworkersetv1.GangCoscheduling:
		m.label(leaderworkersetv1.CoschedulingLabelKey, helper.CoschedulingName(name))
	case leaderworkersetv1.GangKubernetes:
		m.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(name)}
	default:
		return fmt.Errorf("annotation %s must be %s, %s or %s, it is %q", leaderworkersetv1.GangAnnotationKey, leaderworkersetv1.GangVolcano,
			leaderworkersetv1.GangCoscheduling, leaderworkersetv1.GangKubernetes, gang)
	}
	return nil
}

// positive returns the number in an annotation.
func (m *member) positive(key string) (int32, error) {
	value, found := m.Annotations[key]
	if !found {
		return 0, fmt.Errorf("annotation %s must be a number from 1 to 2147483647, there is none", key)
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("annotation %s must be a number from 1 to 2147483647, it is %q", key, value)
	}
	return int32(n), nil
}

func (m *member) label(key, value string) { m.Labels[key] = value }

func (m *member) unnumbered() error {
	return fmt.Errorf("the name of a pod of a LeaderWorkerSet must end with - and its number, as a StatefulSet names it; it is %q", m.Name)
}
