// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// takenAfter is how long what belonged to a leader pod, or to a set, that is gone may have its name.
const takenAfter = 15 * time.Second

// Taken is since when names of Services, and of StatefulSets of workers, are taken, as far as this process has seen.
type Taken struct {
	Services, Workers map[string]time.Time
}

// takenSince returns since when the names are taken that a pass has found taken.
func takenSince(o Observed, r Results) Taken {
	since := func(names []string, before map[string]time.Time) map[string]time.Time {
		var out map[string]time.Time
		for _, name := range names {
			at, known := before[name]
			if !known {
				at = o.Now.Time
			}
			if out == nil {
				out = make(map[string]time.Time, len(names))
			}
			out[name] = at
		}
		return out
	}
	return Taken{since(r.TakenServices, o.TakenSince.Services), since(r.TakenWorkers, o.TakenSince.Workers)}
}

// takenByOthers returns whether the name of a child of the set, or of a leader pod with that name, is taken by another
// object, and not by what is about to go. Without having been seen for long, that is so if the set or the pod is old,
// even if the clock of the server that has dated it is behind.
func takenByOthers(o Observed, name string, since time.Time) bool {
	created, skew := o.Set.CreationTimestamp, time.Duration(0)
	for i := range o.Leaders {
		if o.Leaders[i].Name == name {
			created, skew = o.Leaders[i].Created, clockSkew
		}
	}
	return o.Now.Sub(since) >= takenAfter || o.Now.Sub(created.Time) >= takenAfter+skew
}
