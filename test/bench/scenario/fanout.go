// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// decoder knows sets and the tables that are served for them.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(jobsetv1alpha2.AddToScheme(scheme))
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

func lengthOf(object runtime.Object) (int, error) {
	if table, ok := object.(*metav1.Table); ok {
		return len(table.Rows), nil
	}
	if !meta.IsListType(object) {
		return 0, fmt.Errorf("the answer is a %T and no list", object)
	}
	return meta.LenList(object), nil
}

// fanOut lets many clients watch all sets while the status of one changes again and again. Each delay is counted from the
// moment in which the change is sent.
func (s *space) fanOut(ctx context.Context, sets int) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	f := &fan{sent: make([]time.Time, s.Sizes.Updates+1), last: int32(s.Sizes.Updates)}
	client := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name)
	js, err := client.Get(ctx, "stored-00000", metav1.GetOptions{})
	if err != nil {
		return err
	}
	typicalStatus(js, 0)
	if js, err = client.UpdateStatus(ctx, js, metav1.UpdateOptions{}); err != nil {
		return err
	}
	var receiving sync.WaitGroup
	failures := make([]error, s.Sizes.Watchers)
	for i := range failures {
		own, err := s.ownConnection()
		if err != nil {
			return err
		}
		events, err := own.JobsetV1alpha2().JobSets(s.name).Watch(watching, metav1.ListOptions{ResourceVersion: js.ResourceVersion})
		if err != nil {
			return err
		}
		receiving.Go(func() { failures[i] = f.receive(events, s.Timeout) })
	}
	phase, err := s.measure(ctx, fmt.Sprintf("%d: watch", sets), func(ctx context.Context) error {
		for i := range f.last {
			typicalStatus(js, i+1)
			f.send(i + 1)
			if js, err = client.UpdateStatus(ctx, js, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		receiving.Wait()
		return all(ctx, len(failures), 1, func(i int) error { return failures[i] })
	})
	if err != nil {
		return err
	}
	phase.Add("delivery p50", report.UnitMillis, report.Percentile(f.delays, 50))
	phase.Add("delivery p99", report.UnitMillis, report.Percentile(f.delays, 99))
	phase.Add("delivery of events", report.UnitCount, float64(len(f.delays)))
	return nil
}

// fan knows when each change was sent, by its number, and how long each took to each watcher.
type fan struct {
	last int32

	mu     sync.Mutex
	sent   []time.Time
	delays []float64
}

func (f *fan) send(number int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent[number] = time.Now()
}

// receive follows the changes until the last one. All of them must come, in order.
func (f *fan) receive(events watch.Interface, timeout time.Duration) error {
	defer events.Stop()
	late := time.NewTimer(timeout)
	defer late.Stop()
	for expected := int32(1); expected <= f.last; expected++ {
		select {
		case event, open := <-events.ResultChan():
			now := time.Now()
			js, ok := event.Object.(*jobsetv1alpha2.JobSet)
			if !open || !ok {
				return fmt.Errorf("a watch ended before change %d of %d: %v", expected, f.last, event)
			}
			if js.Status.Restarts != expected {
				return fmt.Errorf("a watch delivered change %d instead of %d", js.Status.Restarts, expected)
			}
			f.mu.Lock()
			f.delays = append(f.delays, millis(now.Sub(f.sent[expected])))
			f.mu.Unlock()
		case <-late.C:
			return fmt.Errorf("change %d of %d was not delivered within %v", expected, f.last, timeout)
		}
	}
	return nil
}
