// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// BenchmarkInPlacePass looks at a set of one Job whose pods restart in place, after one more pod has restarted.
func BenchmarkInPlacePass(b *testing.B) {
	for _, pods := range []int{50, 500, 5000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			set := newSet()
			set.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 1000, RestartStrategy: jobsetv1alpha2.RestartStrategyInPlaceRestart}
			r := newRig(b, set)
			r.build(b, gates.Gates{InPlaceRestart: true})
			job := newJob("js-w-0", set)
			job.UID = types.UID("uid-0")
			job.Spec.Parallelism, job.Spec.Completions = ptr.To(int32(pods)), ptr.To(int32(pods)) //nolint:gosec // a small number
			if err := errors.Join(r.caches.jobSets.GetIndexer().Add(set), r.caches.jobs.GetIndexer().Add(job)); err != nil {
				b.Fatal(err)
			}
			handle := r.onPods()
			says := func(i int, attempt string) *watchedPod {
				pod := podOfJob(fmt.Sprint("js-w-0-", i), job.UID)
				pod.Annotations = map[string]string{jobsetv1alpha2.InPlaceRestartAttemptKey: attempt}
				return watched(b, pod)
			}
			var zero, one []*watchedPod
			for i := range pods {
				zero, one = append(zero, says(i, "0")), append(one, says(i, "1"))
				if err := r.caches.pods.GetIndexer().Add(zero[i]); err != nil {
					b.Fatal(err)
				}
				handle.OnAdd(zero[i], true)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % pods {
				before, after := zero[i], one[i]
				zero[i], one[i] = after, before
				if err := r.caches.pods.GetIndexer().Update(after); err != nil {
					b.Fatal(err)
				}
				handle.OnUpdate(before, after)
				if _, _, _, err := r.Decided(b.Context(), cache.MetaObjectToName(set)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
