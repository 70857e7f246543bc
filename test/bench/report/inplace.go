// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

const inPlace = "in-place"

// addInPlace adds the figures of restarts in place.
func (r results) addInPlace(add func(figure, unit string, limit float64, q quantity)) {
	if r[inPlace] == nil {
		return // it is run by itself
	}
	of := func(phase, figure string) quantity { return r.median(inPlace, phase, figure) }
	for _, figure := range []string{"wall", "cpu/total"} {
		add("in-place: "+figure+" of a restart in place / of a recreation", "", 0.1, of("restart in place", figure).over(of("recreation", figure)))
	}
	add("in-place: writes for each pod of a restart in place, its kubelet's included", "", mostWritesInPlace, of("restart in place", "writes for each pod"))
	add("in-place: writes for each pod of a recreation", "", noLimit, of("recreation", "writes for each pod"))
	for _, program := range []string{"kube-apiserver", "jobset-apiserver"} {
		add("in-place: memory of "+program+" for each agent", UnitKiB, noLimit, of("agents", "memory of "+program+" for each agent"))
	}
}

// mostWritesInPlace is what a pod costs that restarts where it is: the agent and the kubelet write once each, and the
// status of the set is written a few times for all pods.
const mostWritesInPlace = 2.1

// inPlaceCounts are about requests of agents and of the controller for a restart in place.
func (r results) inPlaceCounts() []count {
	one := quantity{value: 1, known: true, text: "1"}
	pods := r.size(inPlace, "jobs").times(r.size(inPlace, "pods of each"))
	calls := func(phase, call string) quantity { return r.called(inPlace, phase, call) }
	counts := []count{
		{"in-place: attempts written by a restart, for each pod", calls("restart in place", "calls/kube-apiserver/APPLY pods").over(pods), 1, 1},
		{"in-place: writes for each pod", calls("restart in place", "writes for each pod").over(one), 2, mostWritesInPlace},
		{"in-place: writes of the status by a restart", calls("restart in place", "client/jobset-controller/update jobsets/status").over(one), 2, 4},
		{"in-place: Jobs created by a recreation, for each Job", calls("recreation", "client/jobset-controller/create jobs").over(r.size(inPlace, "jobs")), 1, 1},
	}
	for _, call := range []string{"create jobs", "delete jobs", "patch jobs", "patch pods", "delete pods", "get pods", "list pods"} {
		counts = append(counts, count{"in-place: " + call + " by a restart", calls("restart in place", "client/jobset-controller/"+call).over(one), 0, 0})
	}
	return counts
}
