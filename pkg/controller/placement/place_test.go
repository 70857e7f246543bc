// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPlace(t *testing.T) {
	taint := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerate := func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	}
	notReady := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	zone := func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "a"} }
	notNamed := func(name string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}}}}}}}}
		}
	}
	for name, test := range map[string]struct {
		world *world
		// want is for WhenFullAffinity, and wantWait for WhenFullWait if that differs.
		want, wantWait string
	}{
		"the smallest rack that suffices":     {world: new(world).racks(4, 2, 3).set("a", 1, 2), want: "a: r1"},
		"one rack for each job":               {world: new(world).racks(2, 2, 2).set("a", 3, 2), want: "a: r0 r1 r2"},
		"nodes without the label":             {world: new(world).node("x", "", 4).set("a", 1, 1), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait"},
		"an empty label is no rack":           {world: new(world).node("x", "rack=", 4).set("a", 1, 1), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait"},
		"pods of an exclusive job":            {world: new(world).racks(1, 2).pod("n0-0", "b/0", 0, 0).set("a", 1, 1), want: "a: r1"},
		"a job that has a rack, without pods": {world: new(world).racks(1, 2).has("b/0", "r0", 0).set("a", 1, 1), want: "a: r1"},
		"pods of no jobset take room only":    {world: new(world).racks(1, 1, 3).pod("n0-0", "", 4, 0).pod("n2-0", "", 1, 0).set("a", 1, 1), want: "a: r1"},
		"all jobs of a set or none": {
			world: new(world).racks(1, 1, 1).has("b/0", "r0", 0).set("a", 3, 1), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait",
		},
		"what is not placed takes nothing": {
			world: new(world).racks(1, 1).set("a", 3, 1).set("b", 2, 1), want: "a: Taken, Affinity; b: r0 r1", wantWait: "a: Taken, Wait; b: r0 r1",
		},
		"only exclusivity makes a set wait": {
			world: new(world).racks(1, 3, 2).set("a", 2, 4).set("b", 1, 1), want: "a: LacksRoom, Affinity; b: r0",
			wantWait: "a: r1 r2 LacksRoom, Assign; b: r0",
		},
		"a set waits for racks that are large enough": {
			world: new(world).racks(1, 3).has("b/0", "r1", 0).set("a", 1, 3), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait",
		},
		"a set does not wait for pods of nobody": {
			world: new(world).racks(3, 3).has("b/0", "r1", 0).pod("n0-0", "", 4, 0).set("a", 1, 3), want: "a: LacksRoom, Affinity", wantWait: "a: r0 LacksRoom, Assign",
		},
		"a set does not wait for nodes": {
			world: new(world).racks(1, 3).has("b/0", "r1", 0).node("x", "rack=r0", 8, notReady).set("a", 1, 3), want: "a: LacksRoom, Affinity", wantWait: "a: r0 LacksRoom, Assign",
		},
		"priority before age": {
			world: new(world).racks(1).set("a", 1, 1).set("b", 1, 1, shaped(shapeOf(4, priority(5)))), want: "a: Taken, Affinity; b: r0", wantWait: "a: Taken, Wait; b: r0",
		},
		"age before name": {world: new(world).racks(1).set("b", 1, 1).set("a", 1, 1), want: "b: r0; a: Taken, Affinity", wantWait: "b: r0; a: Taken, Wait"},
		"a restart keeps its rack from older sets": {
			world: new(world).racks(1).has("b/0", "r0", 0).set("a", 1, 1).set("b", 1, 1), want: "a: Taken, Affinity; b: r0", wantWait: "a: Taken, Wait; b: r0",
		},
		"the previous rack, in spite of pods that terminate there": {
			world: new(world).racks(1, 2).pod("n1-0", "a/0", 4, 0).pod("n1-1", "a/0", 4, 0).set("a", 1, 1, previous(0, "r1", 2)), want: "a: r1",
		},
		"not where nodes are missing":         {world: new(world).racks(1, 2).set("a", 1, 1, previous(0, "r1", 3)), want: "a: r0"},
		"not where the room is gone":          {world: new(world).racks(1, 1).pod("n0-0", "", 4, 0).set("a", 1, 1, previous(0, "r0", 1)), want: "a: r1"},
		"not in a rack to avoid":              {world: new(world).racks(1, 2).set("a", 1, 1, avoid(0, "r0"), previous(0, "r0", 1)), want: "a: r1"},
		"in a rack to avoid if all else lack": {world: new(world).racks(2, 1).set("a", 1, 2, avoid(0, "r0")), want: "a: LacksRoom, Affinity", wantWait: "a: r0 LacksRoom, Assign"},
		"a rack of lower priority, last": {
			world: new(world).racks(1, 2).pod("n0-0", "b/0", 4, -1).set("a", 2, 1), want: "a: r0 r1 (displaces b in r0)",
		},
		"no rack of lower priority, if another is free": {world: new(world).racks(1, 2).pod("n0-0", "b/0", 4, -1).set("a", 1, 1), want: "a: r1"},
		"no preemption, no rack of lower priority": {
			world: new(world).racks(1).has("b/0", "r0", -1).set("a", 1, 1, shaped(shapeOf(4, never))), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait",
		},
		"pods of lower priority count as room": {world: new(world).racks(1).pod("n0-0", "", 4, -1).set("a", 1, 1), want: "a: r0"},
		"room that is free comes before":       {world: new(world).racks(1, 2).pod("n0-0", "", 4, -1).set("a", 1, 1), want: "a: r1"},
		"without preemption they do not": {
			world: new(world).racks(1).pod("n0-0", "", 4, -1).set("a", 1, 1, shaped(shapeOf(4, never))), want: "a: LacksRoom, Affinity", wantWait: "a: r0 LacksRoom, Assign",
		},
		"a taint":                  {world: new(world).node("x", "rack=r0", 4, taint).node("y", "rack=r1", 8).set("a", 1, 1), want: "a: r1"},
		"a taint is tolerated":     {world: new(world).node("x", "rack=r0", 4, taint).node("y", "rack=r1", 8).set("a", 1, 1, shaped(shapeOf(4, tolerate))), want: "a: r0"},
		"a node that is not ready": {world: new(world).node("x", "rack=r0", 4, notReady).node("y", "rack=r1", 8).set("a", 1, 1), want: "a: r1"},
		"a cordoned node":          {world: new(world).node("x", "rack=r0", 4, cordoned).node("y", "rack=r1", 8).set("a", 1, 1), want: "a: r1"},
		"a node selector": {
			world: new(world).node("x", "rack=r0,zone=b", 4).node("y", "rack=r1,zone=a", 8).set("a", 1, 1, shaped(shapeOf(4, zone))), want: "a: r1",
		},
		"a node by name": {world: new(world).racks(1, 2).set("a", 1, 1, shaped(shapeOf(4, notNamed("n0-0")))), want: "a: r1"},
		"jobs of one set make way for each other": {
			world: new(world).racks(1, 3).set("a", 1, 1, previous(0, "r1", 3), func(r *Request) { r.Groups = append(r.Groups, group("a", "v", 1, 3, 1)) }), want: "a: r0 r1",
		},
		"jobs that come later go where others have completed": {world: new(world).racks(1, 1).set("a", 2, 1, second(true)), want: "a: r0 r1 r0 r1"},
		"jobs that come later have racks of their own": {
			world: new(world).racks(1, 1).set("a", 2, 1, second(false)), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait",
		},
		"jobs of a set that stay":      {world: new(world).racks(1, 1).has("a/7", "r0", 0).set("a", 1, 1), want: "a: r1"},
		"pods of a set without a rack": {world: new(world).racks(1, 1).pod("n0-0", "a/driver", 0, 0).set("a", 1, 1), want: "a: r1"},
		"a block of another job": {
			world: new(world).node("x", "rack=r0,block=b0", 4).node("y", "rack=r1,block=b0", 4).node("z", "rack=r2,block=b1", 8).
				set("b", 1, 1, func(r *Request) { r.Groups[0].Topology = block }).set("a", 1, 1),
			want: "b: b0; a: r2",
		},
		"a rack of another job, for a block": {
			world: new(world).node("x", "rack=r0,block=b0", 4).node("y", "rack=r1,block=b0", 4).node("z", "rack=r2,block=b1", 12).
				set("a", 1, 1).set("b", 1, 1, func(r *Request) { r.Groups[0].Topology = block }),
			want: "a: r0; b: b1",
		},
		"blocks and racks of one set do not overlap": {
			world: new(world).node("x", "rack=r0,block=b0", 4).node("y", "rack=r1,block=b0", 4).node("z", "rack=r2,block=b1", 12).
				set("a", 1, 1, func(r *Request) { r.Groups[0].Topology = block; r.Groups = append(r.Groups, group("a", "v", 1, 1, 1)) }),
			want: "a: b0 r2",
		},
		"where a job runs whose pods are not seen": {world: new(world).racks(1, 2).set("a", 1, 1, runs("a/7", rack, "r0", 0)), want: "a: r1"},
		"jobs that run, and nothing else": {
			world: new(world).racks(1).set("a", 1, 1, runs("a/7", rack, "r0", 0)), want: "a: Taken, Affinity", wantWait: "a: Taken, Wait",
		},
		"where a job runs that is placed again": {world: new(world).racks(1, 2).set("a", 1, 1, runs("a/0", rack, "r0", 0)), want: "a: r0"},
		"where a job of another set runs":       {world: new(world).racks(1, 2).set("a", 1, 1).set("b", 1, 1, runs("b/7", rack, "r0", 0)), want: "a: r0; b: r1"},
		"where a job runs that has a rack too":  {world: new(world).racks(1, 1, 2).has("a/7", "r0", 0).set("a", 1, 1, runs("a/7", rack, "r1", 0)), want: "a: r2"},
		"where a job of lower priority runs": {
			world: new(world).racks(1).set("a", 1, 1, runs("a/7", rack, "r0", -1)), want: "a: r0 (displaces a in r0)",
		},
		"where a job runs in a block": {
			world: new(world).node("x", "rack=r0,block=b0", 4).node("y", "rack=r1,block=b0", 4).node("z", "rack=r2,block=b1", 8).
				set("a", 1, 1, runs("a/7", block, "b0", 0)),
			want: "a: r2",
		},
		"where a job runs in what is gone": {
			world: new(world).racks(1).set("a", 1, 1, runs("a/7", rack, "r9", 0), runs("a/8", NameOf("zone"), "z", 0)), want: "a: r0",
		},
		"where a job runs that completes before": {
			world: new(world).racks(1).set("a", 0, 1, second(true), func(r *Request) { r.Groups[1].Jobs = r.Groups[1].Jobs[:1] }, runs("a/7", rack, "r0", 0)),
			want:  "a: r0",
		},
		"few blocks": {
			world: blocksOf("aab", "b", "cccc").set("a", 3, 1, levels("block", "rack")), want: "a: r4 r5 r6",
		},
		"the smallest block": {world: blocksOf("aab", "bb", "cccc").set("a", 3, 1, levels("block")), want: "a: r2 r3 r4"},
		"the block of the jobs that stay": {
			world: blocksOf("aab", "bb", "cccc").has("a/9", "r8", 0).set("a", 2, 1, levels("block")), want: "a: r5 r6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.world.place(WhenFullAffinity); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.wantWait == "" {
				test.wantWait = test.want
			}
			if got := test.world.place(WhenFullWait); got != test.wantWait {
				t.Errorf("if sets wait: got %q, want %q", got, test.wantWait)
			}
			slices.Reverse(test.world.Nodes)
			slices.Reverse(test.world.Pods)
			slices.Reverse(test.world.present)
			if got := test.world.place(WhenFullWait); got != test.wantWait {
				t.Errorf("in another order: got %q, want %q", got, test.wantWait)
			}
		})
	}
}

// runs adds a Job of the first replicatedJob that runs in a domain.
func runs(job string, topology Name, domain string, priority int32) func(*Request) {
	return func(r *Request) {
		r.Running = append(r.Running, Assignment{
			Set: r.Set, Group: NameOf("w"), Job: NameOf(job), Topology: topology, Domain: NameOf(domain), Priority: priority,
		})
	}
}

// second adds a replicatedJob that waits for the first one.
func second(complete bool) func(*Request) {
	return func(r *Request) {
		g := group("a", "v", 2, 1, 2)
		g.DependsOn = []Dependency{{Group: 0, Complete: complete}}
		r.Groups = append(r.Groups, g)
	}
}

// blocksOf returns racks of one node each, in the blocks that the letters name.
func blocksOf(letters ...string) *world {
	w, i := new(world), 0
	for _, part := range letters {
		for _, letter := range part {
			w.node("n"+string(rune('0'+i)), "rack=r"+string(rune('0'+i))+",block="+string(letter), 4)
			i++
		}
	}
	return w
}

func TestDaemonsTakeRoom(t *testing.T) {
	w := new(world).racks(1, 2).set("a", 1, 1)
	w.Daemons = []Daemon{{DaemonOwner("ns", "logs"), shapeOf(1)}}
	if got, want := w.place(WhenFullAffinity), "a: LacksRoom, Affinity"; got != want {
		t.Errorf("with a DaemonSet that has no pods yet: got %q, want %q", got, want)
	}
	w.Pods = append(w.Pods, Pod{Node: NameOf("n1-0"), Owner: DaemonOwner("ns", "logs"), Requests: NewAmounts(list("pods", "1"))})
	if got, want := w.place(WhenFullAffinity), "a: r1"; got != want {
		t.Errorf("with a pod of the DaemonSet that requests nothing: got %q, want %q", got, want)
	}
}
