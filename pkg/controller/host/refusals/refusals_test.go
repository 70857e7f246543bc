// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers/informerstest"
)

func event(name, kind string, uid types.UID, message string, at time.Time) *corev1.Event {
	about, _, _ := strings.Cut(name, ".")
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: "FailedCreate", Message: message, LastTimestamp: metav1.NewTime(at),
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "ns", Name: about, UID: uid},
	}
}

const quota = `Error creating: pods "train-w-0-0-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2`

func TestWords(t *testing.T) {
	for message, want := range map[string]string{
		quota: "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
		"(combined from similar events): " + quota:                                                                   "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
		`Error creating: pods "a" is forbidden: no PriorityClass with name high was found`:                           "no PriorityClass with name high was found",
		`Error creating: pods "a" is forbidden: error looking up service account ns/x: serviceaccount "x" not found`: `error looking up service account ns/x: serviceaccount "x" not found`,
		`create Pod serve-0 in StatefulSet serve failed error: pods "serve-0" is forbidden: exceeded quota: q`:       "exceeded quota: q",
		`Error creating: Internal error occurred: failed calling webhook "w.example.com": connection refused`:        `Internal error occurred: failed calling webhook "w.example.com": connection refused`,
		`Error creating: Pod "a" is invalid: spec.containers[0].image: Required value`:                               "spec.containers[0].image: Required value",
		`Error creating: admission webhook "w.example.com" denied the request: the user is forbidden: no`:            `admission webhook "w.example.com" denied the request: the user is forbidden: no`,
	} {
		if got := words(message); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
	if n := len(words("Error creating: " + strings.Repeat("x", 5000))); n > maxMessage {
		t.Errorf("a long message has %d bytes", n)
	}
}

// run follows events of an API that has some at the start.
func run(t *testing.T, client *fake.Clientset) *Memory {
	t.Helper()
	factory := informers.NewFactory(client)
	kind := factory.For("jobset")
	r := New(kind, "Job", clock.RealClock{})
	informerstest.Run(t, factory, kind, func(context.Context) {})
	return r
}

func TestRefusalsCountUntilTheyAreOvercome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client := fake.NewClientset(event("train-w-0.1", "Job", "u1", quota, start), event("serve.1", "StatefulSet", "u2", quota, start), event("old.1", "Job", "u3", quota, start.Add(-time.Hour)))
		r := run(t, client)
		check := func(step string, uid types.UID, lacks bool, want string) {
			t.Helper()
			got := ""
			if refusal := r.PodRefusal(uid, lacks); refusal != nil {
				got = refusal.Message
			}
			if !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s: got %q, want %q", step, got, want)
			}
		}
		check("a Job without pods", "u1", true, "exceeded quota: q")
		check("another kind", "u2", true, "")
		check("an old event", "u3", true, "")
		check("the Job has its pods", "u1", false, "")
		check("a pod has failed, and its successor comes later", "u1", true, "")
		time.Sleep(time.Minute)
		next := event("train-w-0.2", "Job", "u1", `Error creating: pods "train-w-0-0-fghij" is forbidden: no PriorityClass with name high was found`, time.Now())
		if _, err := client.CoreV1().Events("ns").Create(t.Context(), next, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		check("it is refused again", "u1", true, "no PriorityClass")
		if refusal := r.PodRefusal("u1", true); refusal == nil || refusal.Reason != reasons.AdmissionDenied {
			t.Errorf("got %v, want AdmissionDenied", refusal)
		}
		time.Sleep(lasts + time.Second)
		check("nobody has tried again", "u1", true, "")
	})
}

// TestMemory bounds what is kept of the events of a cluster.
func TestMemory(t *testing.T) {
	const events, limit = 20_000, 700
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools held until the first one
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	kept := make([]*Event, 0, events)
	before := heap()
	for i := range events {
		e := event(fmt.Sprintf("train-w-%d.17f3a%d", i, i), "Job", types.UID(fmt.Sprintf("11111111-2222-3333-4444-%012d", i)), fmt.Sprintf(quota+" %d", i%1000), time.Now())
		kept = append(kept, newEvent(e))
	}
	if each := (heap() - before) / events; each > limit {
		t.Errorf("an event takes %d bytes, more than %d", each, limit)
	} else {
		t.Logf("an event takes %d bytes", each)
	}
	runtime.KeepAlive(kept)
}
