// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// large returns a cluster with racks of 16 nodes and blocks of 10 racks, and 10 pods on each node.
func large(nodes int) *Cluster {
	c := &Cluster{}
	for i := range nodes {
		c.Nodes = append(c.Nodes, NewNode(realisticNode(i)))
		for range 10 {
			pod, _ := NewPod(realisticPod(i, nodes), "", "")
			c.Pods = append(c.Pods, pod)
		}
	}
	return c
}

func largeShape(selector map[string]string, cpu string) *Shape {
	shape, err := NewShape(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		NodeSelector: selector, Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu, "memory", "1Ti", "nvidia.com/gpu", "8")}}},
	}}, Environment{})
	if err != nil {
		panic(err)
	}
	return shape
}

// BenchmarkPlace places the Jobs of one set or of many.
func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct{ nodes, jobs int }{{1_250, 250}, {2_500, 250}, {5_000, 250}, {15_000, 500}} {
		b.Run(fmt.Sprintf("%d nodes, %d Jobs", size.nodes, size.jobs), func(b *testing.B) {
			c := large(size.nodes)
			all := benchmarkRequests(size.jobs)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				b.Run(name, func(b *testing.B) { benchmarkPlace(b, c, nil, all[name]()) })
				b.Run("all racks taken: "+name, func(b *testing.B) { benchmarkPlace(b, c, everyRack(size.nodes), all[name]()) })
			}
		})
	}
}

func benchmarkPlace(b *testing.B, c *Cluster, present []Assignment, requests []Request) {
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		Place(c, present, requests, WhenFullWait)
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// everyRack has a Job of another set in each rack.
func everyRack(nodes int) (present []Assignment) {
	for i := range nodes/16 + 1 {
		present = append(present, Assignment{
			Set: NameOf("ns/other"), Group: NameOf("w"), Job: NameOf(fmt.Sprint("other-", i)), Topology: rack, Domain: NameOf(fmt.Sprint("rack-", i)), Nodes: 16,
		})
	}
	return present
}

// cpuTime is what this process has used, collection of garbage included. Unlike time, it means something beside other work.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// benchmarkRequests are ways in which so many Jobs ask for domains.
func benchmarkRequests(jobs int) map[string]func() []Request {
	selector := map[string]string{"feature.node.kubernetes.io/cpu-cpuid.FLAG-7": "true"}
	return map[string]func() []Request{
		"one set": func() []Request {
			g := group("a", "w", jobs, 15, 0)
			g.Shape = largeShape(selector, "100")
			return []Request{{Set: NameOf("a"), Levels: []Name{block, rack}, Groups: []Group{g}}}
		},
		"one set per job, of equal shapes": func() (out []Request) {
			for i := range jobs {
				name := fmt.Sprintf("ns/set-%d", i)
				g := group(name, "w", 1, 15, 0)
				g.Shape = largeShape(selector, "100")
				out = append(out, Request{Set: NameOf(name), Created: metav1.NewTime(time.Unix(int64(i), 0)), Groups: []Group{g}})
			}
			return out
		},
		"one set per job, of different shapes": func() (out []Request) {
			for i := range jobs {
				name := fmt.Sprintf("ns/set-%d", i)
				g := group(name, "w", 1, 15, 0)
				g.Shape = largeShape(selector, fmt.Sprintf("%d", 1+i%190))
				out = append(out, Request{Set: NameOf(name), Created: metav1.NewTime(time.Unix(int64(i), 0)), Groups: []Group{g}})
			}
			return out
		},
		"one set, a node for each job, which avoid different ones": func() []Request {
			g := group("a", "w", jobs, 1, 0)
			g.Shape, g.Topology = largeShape(selector, "100"), NameOf("kubernetes.io/hostname")
			for i := range g.Jobs {
				g.Jobs[i].Avoid = []Name{NameOf(fmt.Sprintf("node-%d", i))}
			}
			return []Request{{Set: NameOf("a"), Levels: []Name{block, rack}, Groups: []Group{g}}}
		},
		"one set, a node for each job": func() []Request {
			g := group("a", "w", jobs, 1, 0)
			g.Shape, g.Topology = largeShape(selector, "100"), NameOf("kubernetes.io/hostname")
			return []Request{{Set: NameOf("a"), Levels: []Name{block, rack}, Groups: []Group{g}}}
		},
	}
}
