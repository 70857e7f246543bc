// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

// placePhases are what is done in each mode of place.
var placePhases = []string{"start", "restart"}

func (r results) placed(mode, phase, figure string) quantity {
	return r.median("place", mode+": "+phase, figure)
}

// addPlace adds the figures of exclusive placement.
func (r results) addPlace(add func(figure, unit string, limit float64, q quantity)) {
	for _, phase := range placePhases {
		of := func(mode string) quantity { return r.placed(mode, phase, "cpu/total") }
		add("place: CPU of a "+phase+" / without placement", "", 1.15, of("exclusive").over(of("without")))
		add("place: CPU of a "+phase+" by affinities / without placement", "", noLimit, of("affinity").over(of("without")))
		rate := func(mode string) quantity { return r.placed(mode, phase, "pods per second") }
		add("place: pods per second of a "+phase+" by affinities / without placement", "", noLimit, rate("affinity").over(rate("without")))
	}
	add("place: heap of jobset-controller for each node", UnitKiB, noLimit, r.median("place", "nodes are watched", "heap of jobset-controller for each node"))
	for _, mode := range []string{"without", "exclusive", "affinity"} {
		add("place: heap of jobset-controller for each pod, "+mode, UnitKiB, noLimit, r.placed(mode, "start", "heap of jobset-controller for each pod"))
	}
}

// placeRates are the rates with placement, which have a limit below.
func (r results) placeRates() (verdicts []Verdict) {
	const least = 0.9
	for _, phase := range placePhases {
		q := r.placed("exclusive", phase, "pods per second").over(r.placed("without", phase, "pods per second"))
		verdicts = append(verdicts, newVerdict("place: pods per second of a "+phase+" / without placement", "", least, true, q))
	}
	return verdicts
}

// placeCounts are about requests of the controller for sets with exclusive placement, and about the bytes of such sets,
// the one of one pod beside them included.
func (r results) placeCounts() (counts []count) {
	jobs, one := r.size("place", "jobs"), quantity{value: 1, known: true, text: "1"}
	for _, mode := range []string{"without", "exclusive", "affinity"} {
		calls := func(phase, call string) quantity {
			return r.called("place", mode+": "+phase, "client/jobset-controller/"+call)
		}
		for _, phase := range placePhases {
			counts = append(counts,
				count{"place: " + mode + ": Jobs created by a " + phase + ", for each Job", calls(phase, "create jobs").over(jobs), 1, 1},
				count{"place: " + mode + ": Jobs patched by a " + phase, calls(phase, "patch jobs").over(one), 0, 0},
				count{"place: " + mode + ": pods patched by a " + phase, calls(phase, "patch pods").over(one), 0, 0},
				count{"place: " + mode + ": pods deleted by a " + phase, calls(phase, "delete pods").over(one), 0, 0},
				count{"place: " + mode + ": writes of the status by a " + phase, calls(phase, "update jobsets/status").over(one), 1, mostPlaceWrites},
				count{"place: " + mode + ": lists of nodes by a " + phase, calls(phase, "list nodes").over(one), 0, 0},
			)
		}
		counts = append(counts, count{"place: " + mode + ": Jobs deleted by a restart, for each Job", calls("restart", "delete jobs").over(jobs), 1, 1})
	}
	bytes := func(mode string) quantity { return r.placed(mode, "start", "stored/jobset-etcd/jobset bytes") }
	for _, resource := range []string{"nodes", "pods"} {
		watches := r.called("place", "nodes are watched", "client/jobset-controller/watch "+resource)
		counts = append(counts, count{"place: watches of " + resource + " begun for the first set", watches.over(one), 1, 1})
	}
	return append(counts, count{"place: bytes of the sets with domains / of those without", bytes("exclusive").over(bytes("without")), 1, mostPlaceBytes})
}

const (
	// mostPlaceWrites is how often the status of a set is written at most in a start or a restart: its states, its
	// domains, and the counts of Jobs several times while Jobs take long to become ready.
	mostPlaceWrites = 8
	// mostPlaceBytes is how much larger sets are at most for the domains of their Jobs.
	mostPlaceBytes = 1.5
)
