// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerpods

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// Environment of containers that request TPUs (docs/reference/leaderworkerset.md#tpu-environment).
const (
	tpuHostnames   = "TPU_WORKER_HOSTNAMES"
	tpuID          = "TPU_WORKER_ID"
	tpuName        = "TPU_NAME"
	tpuAddresses   = "TPU_PROCESS_ADDRESSES"
	tpuPort        = "TPU_PROCESS_PORT"
	defaultTPUPort = 8476
	// maxTPUEnvironment bounds the bytes that the lists of hosts add to a pod. The store takes objects of up to one and a half times as much.
	maxTPUEnvironment = 1 << 20
)

// slice is the hosts that work together on TPUs: the leader, if it is one of them, and workers first to last.
type slice struct {
	leader      bool
	first, last int64
	// id is the index of the pod among them.
	id int64
}

// addTPUEnvironment tells containers that request TPUs which hosts work together. If the first such container already has one of the
// variables, the pod is left alone.
func (m *member) addTPUEnvironment() error {
	containers := helper.TPUContainers(&m.Spec)
	if len(containers) == 0 {
		return nil
	}
	for _, name := range []string{tpuHostnames, tpuID} {
		if _, found := value(containers[0], name); found {
			return nil
		}
	}
	hosts := m.groupSlice()
	if _, found := m.Annotations[leaderworkersetv1.SubGroupSizeAnnotationKey]; found {
		var err error
		if hosts, err = m.subGroupSlice(); err != nil {
			return err
		}
		containers = containers[:1]
	}
	return m.addHosts(hosts, containers)
}

// groupSlice returns the hosts of the group.
func (m *member) groupSlice() slice {
	s := slice{leader: m.leads || m.leaderRequestsTPUs(), first: 1, last: int64(m.size) - 1, id: int64(m.index)}
	if !s.leader {
		s.id--
	}
	return s
}

// subGroupSlice returns the hosts of the subgroup.
func (m *member) subGroupSlice() (slice, error) {
	n, err := m.positive(leaderworkersetv1.SubGroupSizeAnnotationKey)
	if err != nil {
		return slice{}, err
	}
	size, index := int64(n), int64(m.index)
	if !m.leads && !m.leaderRequestsTPUs() {
		group := (index - 1) / size
		return slice{first: size*group + 1, last: size * (group + 1), id: (index - 1) % size}, nil
	}
	label := m.Labels[leaderworkersetv1.SubGroupIndexLabelKey]
	group, err := strconv.ParseInt(label, 10, 32)
	if err != nil || group < 0 {
		return slice{}, fmt.Errorf("label %s of a pod that requests TPUs must be the index of its subgroup, it is %q; with the policy "+
			"LeaderExcluded, the leader must not request TPUs, or must set %s itself", leaderworkersetv1.SubGroupIndexLabelKey, label, tpuID)
	}
	s := slice{leader: m.leads || group == 0, first: size * group, last: size*(group+1) - 1, id: index % size}
	if s.leader {
		s.first++
	}
	return s, nil
}

func (m *member) leaderRequestsTPUs() bool {
	return m.Annotations[leaderworkersetv1.LeaderRequestsTPUsAnnotationKey] == "true"
}

// addHosts adds the environment to containers, each of which is a worker on each host.
func (m *member) addHosts(hosts slice, containers []*corev1.Container) error {
	if !m.fits(hosts, containers) {
		return fmt.Errorf("the environment for TPUs must have no more than %d bytes: a group of %d pods with %d containers that request TPUs "+
			"is too large; set %s in the pod template", maxTPUEnvironment, m.size, len(containers), tpuHostnames)
	}
	ports, given := make([]string, len(containers)), make([]bool, len(containers))
	for i, container := range containers {
		ports[i], given[i] = value(container, tpuPort)
		if ports[i] == "" {
			ports[i] = strconv.Itoa(defaultTPUPort + i)
		}
	}
	names, addresses := m.hosts(hosts, ports)
	for i, container := range containers {
		container.Env = append(container.Env,
			corev1.EnvVar{Name: tpuHostnames, Value: names},
			corev1.EnvVar{Name: tpuID, Value: strconv.FormatInt(hosts.id*int64(len(containers))+int64(i), 10)},
			corev1.EnvVar{Name: tpuName, Value: m.leader},
			corev1.EnvVar{Name: tpuAddresses, Value: addresses})
		if !given[i] {
			container.Env = append(container.Env, corev1.EnvVar{Name: tpuPort, Value: ports[i]})
		}
	}
	return nil
}

// fits returns whether the lists are small enough, before anything is built.
func (m *member) fits(hosts slice, containers []*corev1.Container) bool {
	port := len("65535")
	for _, container := range containers {
		given, _ := value(container, tpuPort)
		port = max(port, len(given))
	}
	name := len(m.leader) + len("-.,") + len(strconv.FormatInt(hosts.last, 10)) + len(m.Spec.Subdomain)
	host := int64(2*name + len(":") + port)
	n := int64(len(containers))
	return hosts.last-hosts.first+2 <= maxTPUEnvironment/(host*n*n)
}

// hosts returns the list of hosts and the list of addresses.
func (m *member) hosts(hosts slice, ports []string) (names, addresses string) {
	var n, a strings.Builder
	add := func(name string) {
		for _, port := range ports {
			if n.Len() > 0 {
				n.WriteByte(',')
				a.WriteByte(',')
			}
			n.WriteString(name + "." + m.Spec.Subdomain)
			a.WriteString(name + "." + m.Spec.Subdomain + ":" + port)
		}
	}
	if hosts.leader {
		add(m.leader)
	}
	for i := hosts.first; i <= hosts.last; i++ {
		add(m.leader + "-" + strconv.FormatInt(i, 10))
	}
	return n.String(), a.String()
}
