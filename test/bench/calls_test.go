// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	// callSets are the sets of one measurement, and callJobs the Jobs of each.
	callSets, callJobs = 10, 10
	// controllerUser is who the controller is for kube-apiserver.
	controllerUser = "system:serviceaccount:jobset-system:jobset-controller-manager"
)

// BenchmarkCalls counts the requests of the controller for one set of ten Jobs over its life, as the audit log of
// kube-apiserver has them: one metric for each verb and resource, and their sum.
func BenchmarkCalls(b *testing.B) {
	for _, life := range []struct {
		name string
		run  func(*workload)
	}{
		{"to-completion", func(*workload) {}},
		{"restarted-suspended-resumed", restartAndSuspend},
	} {
		b.Run(life.name, func(b *testing.B) {
			calls, lives := map[string]int{}, 0
			for b.Loop() {
				w := newWorkload(b)
				for n := range callSets {
					w.createSet(setName(n), callJobs)
				}
				w.eachCounted(func(s jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Ready })
				life.run(w)
				w.steer("", callSets*callJobs, "succeeded")
				w.eachCounted(func(s jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Succeeded })
				w.count(calls)
				lives += callSets
			}
			b.ReportMetric(0, "ns/op")
			all := 0
			for _, call := range slices.Sorted(maps.Keys(calls)) {
				all += calls[call]
				b.ReportMetric(float64(calls[call])/float64(lives), call)
			}
			if all == 0 {
				b.Fatal("the audit log has no request of the controller")
			}
			b.ReportMetric(float64(all)/float64(lives), "requests/set")
		})
	}
}

func setName(n int) string { return fmt.Sprintf("train-%d", n) }

// eachCounted waits until the counter of each set has come to all of its Jobs.
func (w *workload) eachCounted(counter func(jobsetv1alpha2.ReplicatedJobStatus) int32) {
	w.Helper()
	for n := range callSets {
		w.untilCounted(setName(n), callJobs, counter)
	}
}

// restartAndSuspend lets one Job of each set fail, and then stops the sets for a while.
func restartAndSuspend(w *workload) {
	for n := range callSets {
		w.steer(jobsetv1alpha2.JobSetNameKey+"="+setName(n), 1, "failed")
	}
	w.untilRunning(jobsetv1alpha2.RestartsKey+"=1", callSets*callJobs)
	w.eachCounted(func(s jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Ready })
	w.suspendAll(true)
	w.eachCounted(func(s jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Suspended - s.Active })
	w.suspendAll(false)
	w.eachCounted(func(s jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Ready })
	w.untilRunning("", callSets*callJobs)
}

func (w *workload) suspendAll(suspend bool) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	w.must(callSets, func(n int) error {
		_, err := w.jobSets.JobsetV1alpha2().JobSets(w.namespace).Patch(w.ctx, setName(n), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// auditEvent is what a line of the audit log says about a request.
type auditEvent struct {
	Verb string
	User struct{ Username string }
	Ref  struct{ Namespace, Resource, Subresource string } `json:"objectRef"`
}

// count adds the requests of the controller in this namespace, by verb and resource.
func (w *workload) count(calls map[string]int) {
	w.Helper()
	log, err := os.Open(filepath.Join(w.cluster.dir, "logs", "kube-apiserver-audit.log"))
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close()
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			w.Fatal(err)
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			w.Fatal(err)
		}
		if event.User.Username != controllerUser || event.Ref.Namespace != w.namespace {
			continue
		}
		resource := event.Ref.Resource
		if event.Ref.Subresource != "" {
			resource += "/" + event.Ref.Subresource
		}
		calls[event.Verb+"-"+resource]++
	}
}
