// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// BenchmarkInformersStart has 16 watchers that begin with 500 sets at once, as informers do, and encode them.
func BenchmarkInformersStart(b *testing.B) {
	const sets, watchers = 500, 16
	store, codec := newStore(b, true), newCodec(b)
	for i := range sets {
		set := newVersion("", 1, "driver", 0)
		set.Name, set.Namespace, set.UID = fmt.Sprint("train-", i), "ns", types.UID(fmt.Sprint(i))
		for j := range set.Spec.ReplicatedJobs {
			pod := &set.Spec.ReplicatedJobs[j].Template.Spec.Template.Spec
			pod.Containers = []corev1.Container{{Name: "main", Image: "registry.example.com/training:v1"}}
			for n := range 20 {
				pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", n), Value: "some value of usual length"})
			}
		}
		if err := store.Create(b.Context(), "/jobsets/ns/"+set.Name, set, nil, 0); err != nil {
			b.Fatal(err)
		}
	}
	cached(b, store, fmt.Sprint("/jobsets/ns/train-", sets-1), 0)
	encode := func(object runtime.Object, to io.Writer) error { return codec.Encode(object, to) }
	receive := func(w watch.Interface) {
		defer w.Stop()
		for event := range w.ResultChan() {
			if event.Type == watch.Bookmark {
				return
			}
			var err error
			if cacheable, ok := event.Object.(runtime.CacheableObject); ok {
				err = cacheable.CacheEncode("events", encode, io.Discard)
			} else {
				err = encode(event.Object, io.Discard)
			}
			if err != nil {
				b.Error(err)
			}
		}
	}
	for name, store := range map[string]storage.Interface{"shared": store, "each": store.(*present).Interface.(*initial).Interface} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := spent(b)
			for b.Loop() {
				var receiving sync.WaitGroup
				for range watchers {
					w, err := store.Watch(b.Context(), "/jobsets/", everything(""))
					if err != nil {
						b.Fatal(err)
					}
					receiving.Go(func() { receive(w) })
				}
				receiving.Wait()
			}
			b.ReportMetric(float64((spent(b)-before).Microseconds())/float64(b.N*sets*watchers), "cpu-µs/event")
		})
	}
}

// spent returns the CPU time of this process.
func spent(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
