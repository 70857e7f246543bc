// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// BenchmarkDecide decides about sets of groups of 8 pods, of which pods change and nothing else.
func BenchmarkDecide(b *testing.B) {
	for _, groups := range []int32{1, 100, 1000} {
		for name, change := range map[string]func(f *fixture){
			"at rest":       func(*fixture) {},
			"pods starting": func(f *fixture) { f.worker(0, 1).Ready, f.workers(0).Ready = false, false },
			"updating":      func(f *fixture) { f.leader(0).Revision = "former" },
		} {
			b.Run(fmt.Sprintf("groups=%d/%s", groups, name), func(b *testing.B) {
				f := newFixture(b, groups, 8)
				f.serve()
				change(f)
				b.ReportAllocs()
				for b.Loop() {
					f.Before = Decide(f.Observed).Reading
				}
			})
		}
	}
}

// serve gives the set a template of usual size, and everything else what a set at rest has.
func (f *fixture) serve() {
	f.t.Helper()
	container := &f.Set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0]
	for i := range 20 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", i), Value: "a value"})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprint("volume-", i), MountPath: fmt.Sprint("/mnt/", i)})
	}
	f.Revisions[0] = f.revision(f.Set, 1)
	key := f.Revisions[0].Labels[leaderworkersetv1.RevisionKey]
	f.Leader.Labels[leaderworkersetv1.RevisionKey] = key
	for i := range f.Leaders {
		f.Leaders[i].Revision = key
	}
	for i := range f.Workers {
		f.Workers[i].Revision = key
		for j := range f.Workers[i].Pods {
			f.Workers[i].Pods[j].Revision = key
		}
	}
	f.Services = []Child{{Ref: Ref{Name: f.Set.Name, UID: "service"}, Controller: f.Set.UID}}
	applied := f.stabilize().ApplyLeader
	f.Leader.ObjectMeta.Labels, f.Leader.Annotations, f.Leader.OwnerReferences = applied.Labels, applied.Annotations, applied.OwnerReferences
	f.Leader.Spec, f.Leader.Generation, f.AppliedGeneration = applied.Spec, 1, 1
	f.Applied = ApplyHash(applied)
	if p := f.stabilize(); p.ApplyLeader != nil || p.RequeueAfter != 0 {
		f.t.Fatalf("a set at rest wants %+v", p)
	}
}
