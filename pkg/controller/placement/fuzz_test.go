// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bytesReader turns bytes into odd numbers. It returns 0 when there are none left.
type bytesReader []byte

func (b *bytesReader) next(n int) int {
	if len(*b) == 0 {
		return 0
	}
	x := int((*b)[0])
	*b = (*b)[1:]
	return x % n
}

func (b *bytesReader) quantity() resource.Quantity {
	switch b.next(6) {
	case 0:
		return *resource.NewQuantity(0, resource.DecimalSI)
	case 1:
		return *resource.NewQuantity(-3, resource.DecimalSI)
	case 2:
		return *resource.NewQuantity(1<<62, resource.DecimalSI)
	case 3:
		return *resource.NewMilliQuantity(1, resource.DecimalSI)
	}
	return *resource.NewQuantity(int64(b.next(9)), resource.DecimalSI)
}

func (b *bytesReader) resources() corev1.ResourceList {
	out := corev1.ResourceList{}
	for range b.next(3) {
		out[[]corev1.ResourceName{"cpu", "pods", "example.com/gpu", ""}[b.next(4)]] = b.quantity()
	}
	return out
}

func (b *bytesReader) name(prefix string) string {
	if i := b.next(6); i > 0 {
		return fmt.Sprintf("%s%d", prefix, i)
	}
	return ""
}

func (b *bytesReader) world() *world {
	w := new(world)
	for range b.next(8) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.name("n"), Labels: map[string]string{}}}
		for range b.next(4) {
			node.Labels[[]string{"rack", "block", "zone", ""}[b.next(4)]] = b.name("r")
		}
		node.Status.Allocatable = b.resources()
		node.Spec.Unschedulable = b.next(5) == 0
		w.Nodes = append(w.Nodes, NewNode(node))
	}
	for range b.next(8) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: b.name("n"), Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: b.resources()}}}}}
		if reduced, counts := NewPod(pod, b.name("s"), b.name("j")); counts {
			reduced.Priority = int32(b.next(3) - 1)
			w.Pods = append(w.Pods, reduced)
		}
	}
	for range b.next(4) {
		w.present = append(w.present, Assignment{Set: NameOf(b.name("s")), Group: NameOf(b.name("g")), Job: NameOf(b.name("j")), Topology: b.topology(), Domain: NameOf(b.name("r"))})
	}
	if b.next(2) == 1 {
		w.Daemons = []Daemon{{NameOf(b.name("s")), b.shape()}, {NameOf(b.name("s")), nil}}
	}
	for range b.next(4) {
		w.requests = append(w.requests, b.request())
	}
	return w
}

func (b *bytesReader) topology() Name {
	return NameOf([]string{"rack", "block", "zone", ""}[b.next(4)])
}

func (b *bytesReader) shape() *Shape {
	return shapeOf(0, func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests = b.resources()
		if b.next(3) == 0 {
			s.NodeSelector = map[string]string{"zone": b.name("r"), "not a key!": "x"}
		}
	}, priority(int32(b.next(3)-1)))
}

func (b *bytesReader) request() Request {
	r := Request{Set: NameOf(b.name("s")), Created: metav1.NewTime(time.Unix(int64(b.next(3)), 0))}
	for range b.next(6) {
		r.Levels = append(r.Levels, b.topology())
	}
	for range b.next(4) {
		g := Group{Name: NameOf(b.name("g")), Topology: b.topology(), Pods: int32(b.next(5) - 1)}
		if b.next(5) > 0 {
			g.Shape = b.shape()
		}
		for range b.next(3) {
			g.DependsOn = append(g.DependsOn, Dependency{Group: b.next(5) - 1, Complete: b.next(2) == 0})
		}
		for range b.next(5) {
			job := Job{Key: NameOf(b.name("j")), Index: int32(b.next(4) - 1), Previous: NameOf(b.name("r")), PreviousNodes: int32(b.next(4) - 1)}
			for range b.next(3) {
				job.Avoid = append(job.Avoid, NameOf(b.name("r")))
			}
			g.Jobs = append(g.Jobs, job)
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

// checkOdd makes sure that odd input has a result that holds together.
func checkOdd(t *testing.T, data []byte) {
	b := bytesReader(data)
	w := b.world()
	for _, full := range []WhenFull{WhenFullAffinity, WhenFullWait} {
		results := Place(&w.Cluster, w.present, w.requests, full)
		if len(results) != len(w.requests) {
			t.Fatalf("%d results for %d requests", len(results), len(w.requests))
		}
		for i := range results {
			r := &results[i]
			if (r.Shortage == nil) != (r.Outcome == Placed) || (r.Assignments == nil) != (r.Action != Assign) || r.Shortage.Message() == "" && r.Outcome != Placed {
				t.Fatalf("result %+v of request %+v", r, w.requests[i])
			}
			at := 0
			for j := range w.requests[i].Groups {
				g := &w.requests[i].Groups[j]
				for k := range g.Jobs {
					if r.Action == Assign && (r.Assignments[at].Domain != Name{}) != g.placeable() {
						t.Fatalf("job %d of %q: %+v", k, g.Name, r.Assignments[at])
					}
					at++
				}
			}
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(checkOdd)
}

// TestOddInput runs some of what the fuzzer would.
func TestOddInput(t *testing.T) {
	for seed := range uint64(3_000) {
		data := make([]byte, 0, 256)
		for x := seed*2654435761 + 1; len(data) < 256; x = x*6364136223846793005 + 1442695040888963407 {
			data = binary.BigEndian.AppendUint32(data, uint32(x>>32))
		}
		checkOdd(t, data)
	}
}
