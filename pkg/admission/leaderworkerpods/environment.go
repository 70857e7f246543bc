// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerpods

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// addEnvironment puts the environment of the group in front of the environment of all containers, so that their other variables can refer
// to it.
func (m *member) addEnvironment() error {
	group := m.Labels[leaderworkersetv1.GroupIndexLabelKey]
	if group == "" {
		return fmt.Errorf("label %s must be the index of the group, there is none", leaderworkersetv1.GroupIndexLabelKey)
	}
	env := []corev1.EnvVar{
		{Name: leaderworkersetv1.LeaderAddressEnv, Value: m.set + "-" + group + "." + m.Spec.Subdomain + "." + m.namespace},
		{Name: leaderworkersetv1.GroupSizeEnv, Value: m.Annotations[leaderworkersetv1.SizeAnnotationKey]},
		{Name: leaderworkersetv1.WorkerIndexEnv, Value: m.Labels[leaderworkersetv1.WorkerIndexLabelKey]},
	}
	for _, containers := range [][]corev1.Container{m.Spec.Containers, m.Spec.InitContainers} {
		for i := range containers {
			containers[i].Env = prepend(env, containers[i].Env)
		}
	}
	return nil
}

// prepend returns both lists without the later ones of variables with the same name.
func prepend(first, rest []corev1.EnvVar) []corev1.EnvVar {
	names := sets.New[string]()
	return slices.DeleteFunc(slices.Concat(first, rest), func(v corev1.EnvVar) bool {
		defer names.Insert(v.Name)
		return names.Has(v.Name)
	})
}

// value returns the value of a variable, and whether there is one of that name.
func value(container *corev1.Container, name string) (string, bool) {
	i := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	if i < 0 {
		return "", false
	}
	return container.Env[i].Value, true
}
