// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// memoryScale is by how much the limit of memory and the quota are divided, to keep the test quick. What the program needs
// without objects is not divided, so the full limits leave more room.
const memoryScale = 3

// largestJobSets are the largest sets that may be stored, each large in another way.
func largestJobSets() map[string]func(*jobsetv1alpha2.JobSet) {
	return map[string]func(*jobsetv1alpha2.JobSet){
		"text": func(js *jobsetv1alpha2.JobSet) {
			worker(js).Env = []corev1.EnvVar{{Name: "CONTENT", Value: strings.Repeat("x", 1400<<10)}}
		},
		"containers": func(js *jobsetv1alpha2.JobSet) {
			first := js.Spec.ReplicatedJobs[0]
			js.Spec.ReplicatedJobs = nil
			for w := range 10 {
				next := first.DeepCopy()
				next.Name = fmt.Sprint("w", w)
				containers := &next.Template.Spec.Template.Spec.Containers
				for i := range 1_900 {
					*containers = append(*containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "i"})
				}
				js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *next)
			}
		},
		"replicatedJobs": func(js *jobsetv1alpha2.JobSet) {
			first := js.Spec.ReplicatedJobs[0]
			js.Spec.ReplicatedJobs = nil
			for i := range 1000 {
				first.Name = fmt.Sprint("w", i)
				js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *first.DeepCopy())
			}
		},
	}
}

func worker(js *jobsetv1alpha2.JobSet) *corev1.Container {
	return &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
}

// TestFullStoreFitsMemory fills the store with the largest sets until the server accepts no more, and wants the program
// to stay within the memory limit of the manifests, while that happens and when it starts with the full store. Each run fills it with one kind
// of sets.
func TestFullStoreFitsMemory(t *testing.T) {
	tier.OnRequest(t, "fills the store and measures resident memory")
	container := readManifests(t, embeddedOverlay).server.Spec.Containers[0]
	limit := container.Resources.Limits.Memory().Value() / memoryScale
	quota := options.NewStorageOptions().QuotaBytes / memoryScale
	t.Setenv("GOMEMLIMIT", fmt.Sprint(goLimit(t, container)/memoryScale))
	largest := largestJobSets()
	for _, name := range sample.One(t, largest) {
		grow := largest[name]
		t.Run(name, func(t *testing.T) {
			flags := append(framework.Embedded(filepath.Join(framework.ShortDir(t), "data")), fmt.Sprint("--embedded-etcd-quota-bytes=", quota))
			server := plane.StartServer(t, flags...)
			filling := server.AnonymousPeak(t)
			e := newEnv(t, server, server.Config(t))
			sets, refusal := 0, error(nil)
			for ; refusal == nil && sets < 20_000; sets++ {
				_, err := e.typed.Create(t.Context(), jobSet(fmt.Sprint("full-", sets), grow), metav1.CreateOptions{})
				// On a slow disk some writes time out, and may have happened.
				if err != nil && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
					refusal = err
				}
			}
			// The same sets, written up to twice, fill what the server and etcd remember of the past.
			for i := range min(120, 2*(sets-1)) {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"write":"%d"}}}`, i)
				if _, err := e.typed.Patch(t.Context(), fmt.Sprint("full-", i%(sets-1)), types.MergePatchType, patch, metav1.PatchOptions{}); isInsufficient(err) {
					break
				}
			}
			if !isInsufficient(refusal) {
				t.Fatalf("after %d sets: %v", sets, refusal)
			}
			server.Stop(t)
			again := plane.LaunchServer(t, flags...)
			starting := again.AnonymousPeak(t)
			again.AwaitReady(t)
			t.Logf("%d sets, then %q; peak of %d MiB while they were created, %d MiB at the start; the limit is %d MiB",
				sets-1, refusal, filling()>>20, starting()>>20, limit>>20)
			// While writes are faster than the disk, etcd holds them in memory, for which there is no bound in bytes.
			if filling() > limit+limit/2 || starting() > limit {
				t.Errorf("more than %d bytes of memory: %d while sets were created, %d at the start", limit, filling(), starting())
			}
			e = newEnv(t, again, again.Config(t))
			if err := e.typed.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Errorf("deleting: %v", err)
			}
		})
	}
}
